"""The commands that need no verl: `collabllm mr`, `collabllm score`.

Promises: options are read and checked here, and passed on. Knows nothing of how things are done.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Family(str, Enum):
    """The task's family."""

    PLANNING = "planning"
    MATH = "math"


class User(str, Enum):
    """Who plays the user."""

    AGENDA = "agenda"
    LLM = "llm"


TaskOption = Annotated[Family | None, typer.Option(help="Family: its default metrics are taken.")]
MetricsOption = Annotated[
    str | None, typer.Option(help="planning, math, paper_math, ...; or FILE.yaml of that shape.")
]
WeightsOption = Annotated[
    str | None, typer.Option(help="accuracy=1,token_amount=0.25: these only, with these weights.")
]
JudgeUrl = Annotated[str | None, typer.Option(help="The judge's endpoint, with /v1; or openai.")]
JudgeModel = Annotated[str | None, typer.Option(help="The judge, as the endpoint knows it.")]
JudgeKey = Annotated[str | None, typer.Option(help="Environment variable with the judge's key.")]
JudgeFile = Annotated[
    Path | None, typer.Option(help="YAML file with the judge endpoint's keys; see docs/judge.md.")
]
TokenizerOption = Annotated[
    Path | None, typer.Option(help="The policy's tokenizer, for token_amount; else words.")
]


def add_offline_commands(app: typer.Typer, say: Callable[[str], None]) -> None:
    """Add the commands to an application.

    Args:
        say: Told what is being done.
    """

    @app.command()
    def score(
        file: Annotated[Path, typer.Argument(help="JSON lines: conversations, or a run's own.")],
        task: TaskOption = None,
        metrics: MetricsOption = None,
        weights: WeightsOption = None,
        data: Annotated[
            Path | None, typer.Option(help="A run's data file (.parquet), for its tasks.")
        ] = None,
        judge_url: JudgeUrl = None,
        judge_model: JudgeModel = None,
        judge_key_env: JudgeKey = None,
        judge: JudgeFile = None,
        tokenizer: TokenizerOption = None,
        output: Annotated[
            Path | None, typer.Option(help="Each conversation's scores, as JSON lines.")
        ] = None,
        json: Annotated[Path | None, typer.Option(help="The whole report.")] = None,
        concurrency: Annotated[int, typer.Option(min=1, help="Conversations at a time.")] = 32,
        seed: Annotated[int, typer.Option(help="Of the judge's fences.")] = 1,
    ) -> None:
        """Score stored conversations; exit code 1 if none could be scored."""
        from recipe.collabllm.endpoint_choice import EndpointChoice
        from recipe.collabllm.score import ScoreRequest
        from recipe.collabllm.score import score as run

        judged = EndpointChoice("judge", judge_url, judge_model, judge_key_env, judge)
        family = task.value if task else None
        request = ScoreRequest(
            file, family, metrics, weights, data, judged, tokenizer, output, json, concurrency, seed
        )
        if not run(request, say):
            raise typer.Exit(1)

    @app.command()
    def mr(
        file: Annotated[Path, typer.Argument(help="JSON lines with task, prompt and reply.")],
        policy: Annotated[
            str, typer.Option(help="Who goes on: a model folder, a URL with /v1, or FILE.yaml.")
        ],
        output: Annotated[Path, typer.Option(help="Records; the same command goes on from it.")],
        policy_model: Annotated[
            str | None, typer.Option(help="The policy, as its endpoint knows it.")
        ] = None,
        policy_key_env: Annotated[
            str | None, typer.Option(help="Environment variable with the policy's key.")
        ] = None,
        user: Annotated[User, typer.Option(help="Who plays the user.")] = User.AGENDA,
        user_url: Annotated[str | None, typer.Option(help="Endpoint of --user llm.")] = None,
        user_model: Annotated[str | None, typer.Option(help="Model of --user llm.")] = None,
        user_key_env: Annotated[
            str | None, typer.Option(help="Environment variable with the user's key.")
        ] = None,
        user_endpoint: Annotated[
            Path | None, typer.Option(help="YAML file with the user endpoint's keys.")
        ] = None,
        task: TaskOption = None,
        metrics: MetricsOption = None,
        weights: WeightsOption = None,
        judge_url: JudgeUrl = None,
        judge_model: JudgeModel = None,
        judge_key_env: JudgeKey = None,
        judge: JudgeFile = None,
        tokenizer: TokenizerOption = None,
        K: Annotated[int, typer.Option("--K", min=1, help="Futures of a reply.")] = 3,
        window: Annotated[int, typer.Option(min=0, help="Most user turns in a future.")] = 2,
        max_future_tokens: Annotated[
            int, typer.Option(min=1, help="Budget of each policy turn.")
        ] = 256,
        max_user_tokens: Annotated[int, typer.Option(min=1, help="Budget of a user turn.")] = 256,
        temperature: Annotated[float, typer.Option(min=0, help="Of the policy's turns.")] = 0.8,
        max_resamples: Annotated[
            int, typer.Option(min=0, help="How often a future with a failed user is replayed.")
        ] = 1,
        concurrency: Annotated[int, typer.Option(min=1, help="Futures at a time.")] = 8,
        seed: Annotated[int, typer.Option(help="Of users and futures.")] = 1,
    ) -> None:
        """Play futures of given replies: their multiturn-aware reward (MR)."""
        from recipe.collabllm.endpoint_choice import EndpointChoice
        from recipe.collabllm.mr import MrRequest
        from recipe.collabllm.mr import mr as run
        from recipe.collabllm.mr_policy import PolicyChoice

        request = MrRequest(
            file=file,
            output=output,
            policy=PolicyChoice(policy, policy_model, policy_key_env, temperature, concurrency),
            user=user.value,
            user_endpoint=EndpointChoice("user", user_url, user_model, user_key_env, user_endpoint),
            judge=EndpointChoice("judge", judge_url, judge_model, judge_key_env, judge),
            task=task.value if task else None,
            metrics=metrics,
            weights=weights,
            tokenizer=tokenizer,
            K=K,
            window=window,
            max_future_tokens=max_future_tokens,
            max_user_tokens=max_user_tokens,
            max_resamples=max_resamples,
            seed=seed,
        )
        if not run(request, say):
            raise typer.Exit(1)
