"""Judges over HTTP whose verdicts are a function of what the prompt shows.

Promises: a number is the hash of its name and of the conversation that was read back from the
prompt, so it changes with any character; a planted bias adds to it by place.
Knows nothing of the client or of metrics.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interaction.conversation import Conversation
from reward.judge.group import read_group_prompt
from reward.judge.judge import Judge
from reward.judge.prompt import read_prompt
from reward.judge.question import Question, ScoreField, TextField
from serving.chat_client import ChatClient
from serving.chat_endpoint import ChatEndpoint
from tests.serving.fault_server import Handler, Server, Step, completion, fault_server

CLARITY = Question(
    "clarity",
    "Is the assistant clear?",
    (
        ScoreField("wording", "0: muddled; 1: plain"),
        ScoreField("layout", "0: messy; 10: neat", 0, 10),
    ),
)
ACCURACY = Question(
    "judged_accuracy",
    "Is the answer right?",
    (ScoreField("correct", "0: wrong; 1: right"), TextField("answer", "the final answer")),
    needs_truth=True,
)
TACT = Question(
    "tact", "Does it respect the user?", (ScoreField("tact", "0: no; 1: yes"),), needs_goal=True
)
QUESTIONS = (CLARITY, ACCURACY, TACT)


@contextmanager
def judged_by(step: Step, limits: Path, **settings: Any) -> Iterator[tuple[Judge, Server]]:
    """Run a judge behind a server that answers with a step."""
    with fault_server(step) as server:
        yield judge_at(server, limits, **settings), server


def judge_at(server: Server, limits: Path, **settings: Any) -> Judge:
    endpoint = ChatEndpoint(
        model="m", base_url=server.url, limits_dir=limits, max_attempts=1, temperature=0
    )
    return Judge(ChatClient(endpoint, "judge"), **settings)


def score_of(name: str, conversation: Conversation) -> float:
    text = json.dumps([name, conversation.to_dicts(), conversation.stop], ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=1).digest()[0] / 255


def fair(handler: Handler) -> None:
    """Judge one conversation."""
    conversation = read_prompt(shown_to(handler))
    handler.answer(completion(json.dumps(verdicts(handler, lambda _: conversation))))


def side_by_side(count: int, favour: Mapping[int, float] | None = None) -> Step:
    """Judge a group; `favour` is what a place adds to every score."""

    def step(handler: Handler) -> None:
        talks = read_group_prompt(shown_to(handler), count)

        def place(key: str) -> int:
            return int(key.split("_")[1])

        given = verdicts(handler, lambda key: talks[place(key) - 1])
        for key, verdict in given.items():
            for name in (n for n in verdict if isinstance(verdict[n], float)):
                raised = 0.7 * verdict[name] + (favour or {}).get(place(key), 0.0)
                verdict[name] = min(1.0, raised)
        handler.answer(completion(json.dumps(given)))

    return step


def says_verdict(change: Callable[[dict[str, Any]], Any]) -> Step:
    """Judge one conversation, and change the answer before it is sent."""

    def step(handler: Handler) -> None:
        conversation = read_prompt(shown_to(handler))
        changed = change(verdicts(handler, lambda _: conversation))
        text = changed if isinstance(changed, str) else json.dumps(changed)
        handler.answer(completion(text))

    return step


def shown_to(handler: Handler) -> str:
    text: str = handler.body["messages"][-1]["content"]
    return text


def verdicts(handler: Handler, about: Callable[[str], Conversation]) -> dict[str, Any]:
    schema = handler.body["response_format"]["json_schema"]["schema"]
    return {
        key: {
            name: value(name, field, about(key)) for name, field in fields_of(schema, part).items()
        }
        for key, part in schema["properties"].items()
    }


def fields_of(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    found = schema["$defs"][part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
    fields: dict[str, Any] = found["properties"]
    return fields


def value(name: str, field: Mapping[str, Any], conversation: Conversation) -> float | str:
    if field["type"] == "number":
        return score_of(name, conversation)
    return "because" if name == "reason" else conversation.messages[-1].content
