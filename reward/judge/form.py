"""The form of the judge's answer, made from the questions, and how a filled one is read.

    {"interactivity": {"reason": "...", "easy_to_work_with": 0.5}, "accuracy": {...}}

Promises: a number is a finite number within its bounds, never a truth value or a text; each
question is read on its own, so that one bad verdict spoils no other. Knows nothing of prompts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model
from pydantic import Field as FormField

from interaction.chat import ChatUnreadable
from reward.judge.question import Field, Question, ScoreField, Verdict
from serving.model_json import read_form, read_object

_REASON = "what in the judged turns decides it, in one short sentence"
_CONFIG = ConfigDict(extra="forbid", protected_namespaces=())


@dataclass(frozen=True)
class Reading:
    """What was read of an answer.

    Attributes:
        verdicts: Of the questions that were answered, by key.
        faults: Of the others, what is wrong; never text of the answer.
    """

    verdicts: Mapping[str, Verdict]
    faults: Mapping[str, str]


def described(field: Field) -> str:
    """Return what a field is to hold, in words: not every endpoint hands bounds on."""
    if isinstance(field, ScoreField):
        return f"a number from {field.low:g} to {field.high:g}: {field.meaning}"
    return f"a text: {field.meaning}"


def answer_form(asked: Mapping[str, Question]) -> type[BaseModel]:
    """Return the form of an answer to questions by key."""
    fields: dict[str, Any] = {key: (verdict_form(question), ...) for key, question in asked.items()}
    return create_model("Verdicts", __config__=_CONFIG, **fields)


@lru_cache(maxsize=64)
def verdict_form(question: Question) -> type[BaseModel]:
    """Return the form of the verdict on one question.

    Raises:
        ValueError: If a name is no identifier, is taken, or means something to pydantic.
    """
    check_names(question)
    fields: dict[str, Any] = {"reason": (str, FormField(description=_REASON))}
    fields |= {field.name: _form_field(field) for field in question.fields}
    return create_model(f"{question.name}_verdict", __config__=_CONFIG, **fields)


def check_names(question: Question) -> None:
    """Check the names of a question and its fields.

    Raises:
        ValueError: If one is no identifier, is taken, or means something to pydantic.
    """
    names = [field.name for field in question.fields]
    for name in (question.name, *names):
        if not name.isidentifier() or name.startswith("_") or hasattr(BaseModel, name):
            raise ValueError(
                f"question {question.name!r}: {name!r} cannot name a question or field"
            )
    if not names or len({*names, "reason"}) != len(names) + 1:
        raise ValueError(f"question {question.name!r}: fields need names of their own, got {names}")


def read_answer(filled: BaseModel) -> dict[str, Verdict]:
    """Return the verdicts of a form that was filled in well."""
    return {key: _without_reason(verdict) for key, verdict in filled.model_dump().items()}


def salvaged(text: str, asked: Mapping[str, Question]) -> Reading:
    """Read what can be read of an answer that does not fit as a whole."""
    try:
        value = read_object(text)
    except ChatUnreadable as error:
        return Reading({}, dict.fromkeys(asked, str(error)))
    verdicts: dict[str, Verdict] = {}
    faults: dict[str, str] = {}
    for key, question in asked.items():
        try:
            verdicts[key] = _read_one(value, key, question)
        except ChatUnreadable as error:
            faults[key] = str(error)
    return Reading(verdicts, faults)


def _read_one(value: Mapping[str, object], key: str, question: Question) -> Verdict:
    if key not in value:
        raise ChatUnreadable("it was left out", "")
    return _without_reason(read_form(json.dumps(value[key]), verdict_form(question)).model_dump())


def _without_reason(verdict: Mapping[str, float | str]) -> Verdict:
    return {name: value for name, value in verdict.items() if name != "reason"}


def _form_field(field: Field) -> tuple[type, Any]:
    text = described(field)
    if isinstance(field, ScoreField):
        return float, FormField(
            strict=True, allow_inf_nan=False, ge=field.low, le=field.high, description=text
        )
    pattern = f"^(?:{field.pattern})$" if field.pattern else None
    return str, FormField(pattern=pattern, description=text)
