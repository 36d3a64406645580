"""What is sent to a chat endpoint: the arguments of one call, and how an object is asked for.

Promises: the same question gives the same arguments (a cache goes by them); a schema goes out
in the strict form endpoints want. Knows nothing of HTTP or of answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from interaction.conversation import Message
from serving.chat_endpoint import ChatEndpoint

SEEDS = 2**31  # endpoints read a seed as a 32-bit number

# Keywords strict endpoints refuse or ignore; the form itself checks ranges afterwards.
_DROPPED = (
    "default exclusiveMaximum exclusiveMinimum maxItems maxLength maximum minItems minLength "
    "minimum multipleOf pattern"
).split()


def request(
    endpoint: ChatEndpoint,
    messages: Sequence[Message],
    *,
    form: type[BaseModel] | None,
    seed: int | None,
    max_tokens: int | None,
    refused: Collection[str] = (),
) -> dict[str, Any]:
    """Return the arguments of one `chat.completions.create`.

    Args:
        endpoint: Who is asked.
        messages: The question.
        form: The object that is wanted, or None for text.
        seed: Any whole number; None for none.
        max_tokens: Budget of the answer; None for the endpoint's own.
        refused: Arguments the endpoint has turned down (`response_format`, `seed`).
    """
    sent = [message.to_dict() for message in messages]
    if endpoint.merge_turns:
        sent = merged(sent)
    # Newer OpenAI models take only the new name; other servers mostly know the old one.
    budget = "max_completion_tokens" if endpoint.base_url is None else "max_tokens"
    arguments: dict[str, Any] = {"model": endpoint.model, "messages": sent}
    arguments[budget] = max_tokens or endpoint.max_tokens
    optional = {"temperature": endpoint.temperature, "top_p": endpoint.top_p}
    arguments |= {name: value for name, value in optional.items() if value is not None}
    if seed is not None and "seed" not in refused:
        arguments["seed"] = seed % SEEDS
    if endpoint.extra_body:
        arguments["extra_body"] = dict(endpoint.extra_body)
    if form is None:
        return arguments
    if endpoint.structured_output == "json_schema" and "response_format" not in refused:
        return arguments | {"response_format": response_format(form)}
    if sent:
        # At the end, so that the prefix cache keeps what comes before.
        sent[-1]["content"] += f"\n\n{described(form)}"
    return arguments


def merged(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return messages with those of one role in a row joined by an empty line."""
    turns: list[dict[str, str]] = []
    for message in messages:
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += f"\n\n{message['content']}"
        else:
            turns.append(dict(message))
    return turns


def response_format(form: type[BaseModel]) -> dict[str, Any]:
    """Return a form as endpoints take a schema."""
    schema = {"name": form.__name__, "strict": True, "schema": strict_schema(form)}
    return {"type": "json_schema", "json_schema": schema}


def described(form: type[BaseModel]) -> str:
    """Return a form in words, for endpoints that take no schema."""
    schema = json.dumps(form.model_json_schema(), ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It fits this JSON schema:\n{schema}"


def strict_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a form with every field required and no other allowed."""
    schema: dict[str, Any] = _strict(form.model_json_schema())
    return schema


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(part) for key, part in schema.items() if key not in _DROPPED}
    for table in ("properties", "$defs"):  # names of fields are no keywords
        if table in schema:
            strict[table] = {name: _strict(part) for name, part in schema[table].items()}
    if "properties" in strict:
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict
