"""What can go wrong with one call to a chat endpoint, and which of it is worth another try.

Promises: every error of the SDK and every useless answer becomes one `CallFault` with a kind, a
reason without the key, and a remedy. Knows nothing of waiting or of counting.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from serving.chat_endpoint import NO_KEY, ChatEndpoint

_RETRIED = (408, 409, 429)
_REASON_LENGTH = 500


class CallFault(Exception):
    """One call gave nothing that can be used.

    Attributes:
        kind: For counting: `timeout`, `connection`, `malformed`, `empty`, `length`, `filtered`,
            or `http_` with the status.
        status: Of HTTP; None where there was none.
        retried: Whether another try may help.
        retry_after: Seconds the endpoint asks to wait, if it does.
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        status: int | None = None,
        retried: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.status = status
        self.retried = retried
        self.retry_after = retry_after


def fault_of(error: Exception, endpoint: ChatEndpoint) -> CallFault:
    """Return what an error of the SDK means."""
    if isinstance(error, (openai.APITimeoutError, asyncio.TimeoutError)):
        return CallFault("timeout", f"no answer within {endpoint.timeout_s:g} s (timeout_s)")
    reason = _without_key(str(error), endpoint)[:_REASON_LENGTH]
    if isinstance(error, openai.APIStatusError):
        return _status_fault(error, reason)
    if isinstance(error, openai.APIConnectionError):
        cause = _without_key(repr(error.__cause__ or error), endpoint)[:_REASON_LENGTH]
        return CallFault("connection", f"the connection failed: {cause}")
    return CallFault("malformed", f"the answer is no chat completion: {reason}")


def text_of(response: Any) -> str:
    """Return the text of a chat completion.

    Raises:
        CallFault: If it has none, or only a part of one.
    """
    try:
        choice = response.choices[0]
        text, finish = choice.message.content, choice.finish_reason
        (text or "").encode()  # half a surrogate pair could not be sent on
    except (AttributeError, IndexError, TypeError, UnicodeEncodeError):
        raise CallFault("malformed", "the answer is no chat completion") from None
    if finish == "length":
        raise CallFault("length", "the answer was cut off by its token budget (max_tokens)")
    if finish == "content_filter":
        raise CallFault("filtered", "the endpoint's content filter stopped the answer")
    if not isinstance(text, str) or not text.strip():
        raise CallFault("empty", "the answer is empty")
    return text


def refused_argument(fault: CallFault, arguments: Mapping[str, Any]) -> str | None:
    """Return which of the arguments an endpoint can do without was turned down, if one was."""
    if fault.status not in (400, 422):
        return None
    names = {"response_format": r"response_format|json_schema|grammar", "seed": r"\bseed\b"}
    return next(
        (n for n, said in names.items() if n in arguments and re.search(said, str(fault), re.I)),
        None,
    )


def remedy(fault: CallFault, endpoint: ChatEndpoint, role: str) -> str:
    """Return what a person can do about a fault."""
    key = endpoint.key_variable
    by_status = {
        400: "check the length of the conversation and the sampling settings",
        401: f"check the key in {key}" if key else f"set {role}.api_key_env",
        403: f"the key{f' in {key}' if key else ''} must be allowed to use this model",
        404: f"check {role}.model, and that {role}.base_url ends in /v1",
        429: f"lower {role}.requests_per_minute or {role}.concurrency, or check the account",
    }
    by_kind = {
        "connection": f"start it with `collabllm serve`, or set {role}.base_url",
        "timeout": f"raise {role}.timeout_s, or lower {role}.concurrency",
        "length": f"raise {role}.max_tokens",
    }
    if re.search(r"alternat", str(fault), re.IGNORECASE):
        return f"set {role}.merge_turns=true: the model's template wants strict turns"
    return by_kind.get(fault.kind) or by_status.get(fault.status or 0) or "see the endpoint's log"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a Retry-After header asks for; it holds seconds or a date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _status_fault(error: openai.APIStatusError, reason: str) -> CallFault:
    status = error.status_code
    # An account without money answers 429 as well, and no waiting helps.
    retried = (status in _RETRIED or status >= 500) and error.code != "insufficient_quota"
    wait = retry_after(error.response.headers) if status in (429, 503) else None
    return CallFault(
        f"http_{status}", f"HTTP {status}: {reason}", status=status, retried=retried,
        retry_after=wait,
    )  # fmt: skip


def _without_key(text: str, endpoint: ChatEndpoint) -> str:
    key = endpoint.api_key()
    return text if key == NO_KEY else text.replace(key, "***")
