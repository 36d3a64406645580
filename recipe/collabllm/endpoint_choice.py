"""Chat endpoints chosen on the command line: the policy, the user, the judge.

    --judge-url http://localhost:8000/v1 --judge-model NAME     --judge endpoint.yaml

Promises: an endpoint that cannot be used is told before work begins, by the option that names
it; a key is named by its variable, never given. Knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from interaction.chat import ChatFailed
from recipe.collabllm.metric_choice import ChoiceError
from serving.chat_client import ChatClient, connect
from serving.chat_endpoint import OPENAI_URL


@dataclass(frozen=True)
class EndpointChoice:
    """What the command line says of one endpoint.

    Attributes:
        role: `policy`, `user` or `judge`.
        url: Up to and with `/v1`; "openai" for OpenAI.
        model: As the endpoint knows it.
        key_env: Environment variable that holds the key.
        file: A YAML file with keys of `serving/chat_endpoint.py`; the others override it.
    """

    role: str
    url: str | None = None
    model: str | None = None
    key_env: str | None = None
    file: Path | None = None

    def config(self, **defaults: Any) -> dict[str, Any] | None:
        """Return the endpoint's keys, or None if nothing was said.

        Args:
            defaults: Keys that the file may override.

        Raises:
            ChoiceError: If something is missing or cannot be used.
        """
        said = {"base_url": self.url, "model": self.model, "api_key_env": self.key_env}
        said = {key: value for key, value in said.items() if value is not None}
        if not said and self.file is None:
            return None
        config = {**defaults, **self._filed(), **said}
        for key, option in (("model", "model"), ("base_url", "url")):
            if key not in config:
                raise ChoiceError(f"--{self.role}-{option} is missing: an endpoint needs it")
        if config["base_url"] == "openai":
            config["base_url"] = OPENAI_URL
        self.client(config)
        return config

    def client(self, config: Mapping[str, Any]) -> ChatClient:
        """Return a client of the endpoint.

        Raises:
            ChoiceError: If a key is unknown or bad, or the environment lacks the API key.
        """
        try:
            return connect(config, self.role)
        except ValueError as error:
            raise ChoiceError(f"--{self.role}: {error}") from error

    def _filed(self) -> dict[str, Any]:
        if self.file is None:
            return {}
        try:
            content = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ChoiceError(f"--{self.role} {self.file}: cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise ChoiceError(
                f"--{self.role} {self.file}: expected keys such as base_url and model"
            )
        return {str(key): value for key, value in content.items()}


def answers_of(config: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return those keys of an endpoint that decide on its answers."""
    if config is None:
        return None
    names = ("base_url", "model", "temperature", "top_p", "extra_body")
    return {name: config[name] for name in names if config.get(name) is not None}


async def check_reached(clients: Iterable[ChatClient]) -> None:
    """Check that endpoints answer and have their model.

    Raises:
        ChoiceError: If one does not; tells URL and remedy.
    """
    for client in clients:
        try:
            await client.probe()
        except ChatFailed as error:
            raise ChoiceError(str(error)) from error
        finally:
            await client.close()


def spent(role: str, usage: Mapping[str, float]) -> str:
    """Return what a role's calls have cost, in words.

    Args:
        usage: As in `ChatAnswer.usage`.
    """
    tokens = f"{usage.get('prompt_tokens', 0):,.0f} + {usage.get('completion_tokens', 0):,.0f}"
    text = f"{role}: {usage.get('calls', 0):,.0f} calls, {tokens} tokens (read + written)"
    return f"{text}, cost {usage['cost']:.4f}" if "cost" in usage else text
