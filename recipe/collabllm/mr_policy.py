"""The policy that plays the futures of given replies: a folder's model, or an endpoint.

Promises: a policy that cannot play is told before anything is played; torch is needed for a
folder only. Knows nothing of users or rewards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interaction.policy import Policy
from recipe.collabllm.endpoint_choice import EndpointChoice, answers_of
from recipe.collabllm.given_reply import GivenReply
from recipe.collabllm.metric_choice import ChoiceError
from recipe.collabllm.token_count import CountTokens
from serving.chat_client import ChatClient
from serving.endpoint_policy import EndpointPolicy

_TEMPLATE_TOKENS = 16  # that a chat template may put around a turn


@dataclass(frozen=True)
class OpenPolicy:
    """A policy, ready to play.

    Attributes:
        policy: It.
        count_tokens: Of a folder's tokenizer; None where the policy brings none.
        client: What calls an endpoint; None for a folder.
    """

    policy: Policy
    count_tokens: CountTokens | None = None
    client: ChatClient | None = None


@dataclass(frozen=True)
class PolicyChoice:
    """What the command line says of the policy.

    Attributes:
        where: A model folder, a URL, or a YAML file with keys of `serving/chat_endpoint.py`.
        model: As an endpoint knows it.
        key_env: Environment variable that holds an endpoint's key.
        temperature: Of its turns.
        concurrency: Turns at the same time.
    """

    where: str
    model: str | None = None
    key_env: str | None = None
    temperature: float = 0.8
    concurrency: int = 8

    @property
    def endpoint(self) -> EndpointChoice | None:
        """The endpoint, or None for a folder."""
        if self.where == "openai" or self.where.startswith(("http://", "https://")):
            return EndpointChoice("policy", self.where, self.model, self.key_env)
        if self.where.endswith((".yaml", ".yml")):
            return EndpointChoice("policy", None, self.model, self.key_env, Path(self.where))
        return None

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides on its turns."""
        config = self.endpoint.config(temperature=self.temperature) if self.endpoint else None
        return answers_of(config) or {"folder": self.where, "temperature": self.temperature}

    @contextmanager
    def opened(
        self, replies: Sequence[GivenReply], longest_future: int, turns: int
    ) -> Iterator[OpenPolicy]:
        """Give the policy while the block lasts.

        Args:
            replies: What it will go on from.
            longest_future: Tokens that the turns of a future may take in all.
            turns: Their number.

        Raises:
            ValueError: If it cannot be used.
        """
        endpoint = self.endpoint
        if endpoint is None:
            with _folder(self, replies, longest_future + turns * _TEMPLATE_TOKENS) as policy:
                yield policy
            return
        config = endpoint.config(temperature=self.temperature, concurrency=self.concurrency)
        assert config is not None
        client = endpoint.client(config)
        yield OpenPolicy(EndpointPolicy(client), client=client)


@contextmanager
def _folder(
    chosen: PolicyChoice, replies: Sequence[GivenReply], longest_future: int
) -> Iterator[OpenPolicy]:
    try:
        import torch
        from transformers.utils.logging import disable_progress_bar

        from recipe.collabllm.chat_model import find_model
        from recipe.collabllm.hardware import multiplies_bfloat16
        from recipe.collabllm.preflight import PreflightError, check_model
        from serving.engine_policy import engine_policy
    except ImportError as error:
        raise ChoiceError(
            f"--policy {chosen.where}: a folder's model runs in this process and needs torch and "
            f"transformers ({error}): install the extra 'cpu', or give the URL of an endpoint"
        ) from error
    try:
        folder = find_model(Path(chosen.where), Path(chosen.where), lambda text: None)
    except ValueError as error:
        raise ChoiceError(str(error).replace("--model", "--policy", 1)) from error
    tokens = check_model(folder, trusted=False, max_length=1)
    begun = (len(tokens.encode(r.prompt)) + tokens.count(r.turn.text) for r in replies)
    longest = max(begun, default=0) + longest_future + _TEMPLATE_TOKENS
    try:
        check_model(folder, trusted=False, max_length=longest)
    except PreflightError as error:
        raise ChoiceError(
            f"--policy {chosen.where}: the longest conversation may take {longest} tokens, and it "
            "reads fewer: lower --window, --max-future-tokens or --max-user-tokens"
        ) from error
    disable_progress_bar()
    with engine_policy(
        folder,
        chosen.concurrency,
        temperature=chosen.temperature,
        max_length=longest,
        dtype=torch.bfloat16 if multiplies_bfloat16() else torch.float32,
    ) as policy:
        yield OpenPolicy(policy, tokens.count)
