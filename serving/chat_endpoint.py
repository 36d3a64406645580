"""Where a chat model is reached, and how it may be called: one frozen, checked record.

Promises: an unknown key or a bad value is a clear error; the key is read from the environment
when it is needed and stands in no field, so no repr or log can show it.
Knows nothing of HTTP, retries or prompts.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # the SDK wants a key, and would send OpenAI's own to a local server


def default_limits_dir() -> Path:
    """Return the folder that all processes of this user on this machine share."""
    return Path(tempfile.gettempdir()) / f"collabllm-limits-{os.getuid()}"


class ChatEndpoint(BaseModel):
    """An OpenAI-compatible endpoint and the manners to keep with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    model: str = Field(min_length=1)
    """The model's name, as the endpoint knows it."""
    base_url: str | None = None
    """Up to and with `/v1`; None for OpenAI."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Environment variable that holds the key; None for none (at OpenAI: OPENAI_API_KEY)."""
    concurrency: int = Field(default=16, ge=1)
    """Calls in flight, over all processes that share `limits_dir`."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Over the same processes; None for no limit."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Seconds one call may take, from the first byte sent to the last one read."""
    max_attempts: int = Field(default=5, ge=1)
    """Tries of one call, the first one included."""
    max_wait_s: float = Field(default=60.0, ge=0)
    """Seconds one call may spend between its tries, in all."""
    temperature: float | None = Field(default=1.0, ge=0)
    """None: the endpoint's own."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None: the endpoint's own."""
    max_tokens: int = Field(default=1024, ge=1)
    """Tokens of an answer, where the caller does not say."""
    structured_output: Literal["json_schema", "none"] = "json_schema"
    """How an object is asked for: by schema, or in words in the last message."""
    merge_turns: bool = False
    """Joins messages of one role in a row, for chat templates that demand strict turns."""
    limits_dir: Path = Field(default_factory=default_limits_dir)
    """On a local disk: the limits are file locks."""
    cache_dir: Path | None = None
    """Keeps answers at temperature 0; None for no cache."""
    price_per_million_prompt: float | None = Field(default=None, ge=0)
    """None: unknown, and no cost is told. Cached prompt tokens are counted in full."""
    price_per_million_completion: float | None = Field(default=None, ge=0)
    """As above."""
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    """Sent along as it is."""

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be a URL such as http://localhost:8000/v1")
        if "@" in parts.netloc or parts.query:
            raise ValueError("must hold no password or key; name its variable in api_key_env")
        return url.rstrip("/")

    @property
    def url(self) -> str:
        """The base URL, OpenAI's included."""
        return self.base_url or OPENAI_URL

    @property
    def key_variable(self) -> str | None:
        """The environment variable the key is read from, if one is needed."""
        return self.api_key_env or ("OPENAI_API_KEY" if self.base_url is None else None)

    @property
    def limits_folder(self) -> Path:
        """The folder of this endpoint's limits: who calls the same model shares it."""
        name = hashlib.sha256(f"{self.url}\n{self.model}".encode()).hexdigest()[:16]
        return self.limits_dir / name

    def api_key(self) -> str:
        """Read the key from the environment.

        Raises:
            ValueError: If the variable is not set; names it and what to do.
        """
        if self.key_variable is None:
            return NO_KEY
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ValueError(
                f"{self.model} at {self.url} needs a key, and the environment variable "
                f"{self.key_variable} is not set: `export {self.key_variable}=...`, or name "
                "another variable in api_key_env"
            )
        return key

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float | None:
        """Return what tokens cost, or None where a price is unknown."""
        if self.price_per_million_prompt is None or self.price_per_million_completion is None:
            return None
        prompt = prompt_tokens * self.price_per_million_prompt
        return (prompt + completion_tokens * self.price_per_million_completion) / 1e6


def endpoint_from(config: Mapping[str, Any], role: str) -> ChatEndpoint:
    """Build an endpoint from plain configuration.

    Args:
        config: The fields of `ChatEndpoint`.
        role: Whose endpoint it is; names the keys in errors.

    Raises:
        ValueError: If a key is unknown, missing or bad; names it.
    """
    try:
        return ChatEndpoint.model_validate(dict(config))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join([role, *map(str, fault['loc'])])}: {_reason(fault['type'], fault['msg'])}"
            for fault in error.errors(include_input=False, include_url=False)
        )
    raise ValueError(problems)


def _reason(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"no such key; there are {', '.join(ChatEndpoint.model_fields)}"
    return message
