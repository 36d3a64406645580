"""Objects out of a model's text: what it meant, or an error; never a guess and never half.

Promises: a string stays a string; prose and code fences around an object are passed over; bad
quoting is repaired only where the object was brought to its end; anything else is
`ChatUnreadable` with the text. Knows nothing of who wrote the text.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from interaction.chat import ChatUnreadable

FormT = TypeVar("FormT", bound=BaseModel)

_OBJECT_START = re.compile(r"""\{\s*(?:["'}]|\w+\s*:)""")  # and not the {x} of a formula
# How an object that was finished ends: with a closed value, or a bare one after a quoted key.
_OBJECT_END = re.compile(
    r"""(?:["'\]}]|["']\s*:\s*(?:true|false|null|none|-?[\d.]+))\s*,?\s*\}$""", re.IGNORECASE
)
# A string that was ended, by the quote it starts with.
_STRINGS = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}", re.DOTALL) for quote in "\"'"
}
_JSON = json.JSONDecoder(strict=False)  # a bare line break in a string is no reason to fail


def read_form(text: str, form: type[FormT]) -> FormT:
    """Read an object of a form; keys the form does not have are dropped.

    Args:
        text: What the model said.
        form: What was asked for. A number or truth value for a string field is taken as its
            JSON text.

    Raises:
        ChatUnreadable: If there is no whole object in the text, or it does not fit.
    """
    value = read_object(text)
    try:
        return form.model_validate(value)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            _mend(value, fault["type"], fault["loc"])
    try:
        return form.model_validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    reasons = "; ".join(f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in faults)
    raise ChatUnreadable(f"the answer does not fit {form.__name__}: {reasons}", text)


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object, alone or with something around it.

    Raises:
        ChatUnreadable: If there is none, or it was cut off.
    """
    value = _whole(text)
    if value is None and (start := _OBJECT_START.search(text)):
        value = _first(text, start.start())
        if value is None:
            value = _repaired(text[start.start() : text.rfind("}") + 1])
    if not isinstance(value, dict) or not _is_text(value):
        raise ChatUnreadable("the answer is not a whole JSON object", text)
    return value


def _is_text(value: object) -> bool:
    """Say whether all strings can be sent on: half a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _whole(text: str) -> Any:
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def _first(text: str, start: int) -> Any:
    try:
        return _JSON.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _repaired(candidate: str) -> Any:
    if not _was_finished(candidate):
        return None
    try:
        return json_repair.loads(candidate)
    except (ValueError, RecursionError):
        return None


def _was_finished(candidate: str) -> bool:
    """Say whether an object that ends with "}" ends there indeed.

    A cut-off text may hold a "}" of its own ("use {x} and"): mending that would end the string
    there, and half a message would pass for a whole one. Outside of its strings such a text has
    a quote too many, or a brace; stray quotes inside a message mostly come in pairs.
    """
    quote = next((char for char in candidate if char in _STRINGS), '"')
    outside = _STRINGS[quote].sub("", candidate)
    balanced = outside.count("{") == outside.count("}")
    return balanced and quote not in outside and bool(_OBJECT_END.search(candidate))


def _mend(value: Any, fault: str, path: tuple[int | str, ...]) -> None:
    """Correct one harmless misfit in place; leave any other alone."""
    try:
        for step in path[:-1]:
            value = value[step]
        found = value[path[-1]]
    except (KeyError, IndexError, TypeError):  # a step of the form, not of the object
        return
    if fault == "string_type" and isinstance(found, (bool, int, float)):
        value[path[-1]] = json.dumps(found)
    elif fault == "extra_forbidden":
        del value[path[-1]]
