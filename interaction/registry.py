"""Simulated users by name, from the YAML that verl had up to 0.7.

    interaction:
      - name: agenda
        class_name: interaction.agenda_user.AgendaUser
        config: {}

Promises: an entry is checked before anything runs and a fault names it; a class with the four
interaction methods becomes a user by itself; an `endpoint` becomes a chat model. Knows nothing
of particular users or endpoints.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from interaction.chat import ChatModel
from interaction.contract import BaseInteraction, InteractionUser
from interaction.user import SimulatedUser

Connect = Callable[[Mapping[str, Any]], ChatModel]

_CONTRACT = (
    "start_interaction",
    "generate_response",
    "calculate_score",
    "finalize_interaction",
)


class InteractionConfigError(ValueError):
    """The interaction configuration cannot be used; the message says where and why."""


def read_interactions(path: str | Path) -> list[dict[str, Any]]:
    """Return the entries of an interaction YAML file.

    Raises:
        InteractionConfigError: If the file cannot be read or has no `interaction` list.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InteractionConfigError(f"{path}: cannot be read: {error}") from error
    entries = content.get("interaction") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InteractionConfigError(
            f"{path}: expected a list under `interaction`, each with name, class_name, config"
        )
    return entries


def load_users(
    entries: Sequence[Mapping[str, Any]], source: str, connect: Connect | None = None
) -> dict[str, SimulatedUser]:
    """Make the users of all entries.

    Args:
        entries: Mappings with `name`, `class_name` and `config`.
        source: Where they come from, for messages.
        connect: Makes the chat model of a user whose config has an `endpoint`; the user gets
            it as `chat`.

    Raises:
        InteractionConfigError: If an entry is malformed, named twice, its class cannot be
            loaded or made or has part of the contract only, or nothing can connect it.
    """
    users: dict[str, SimulatedUser] = {}
    for number, entry in enumerate(entries, start=1):
        where = f"{source}: interaction {number}"
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InteractionConfigError(f"{where}: has no name")
        if name in users:
            raise InteractionConfigError(f"{where}: the name {name!r} is taken")
        users[name] = _make_user(entry, f"{where} ({name})", connect)
    return users


def _make_user(entry: Mapping[str, Any], where: str, connect: Connect | None) -> SimulatedUser:
    unknown = set(entry) - {"name", "class_name", "config"}
    if unknown:
        raise InteractionConfigError(f"{where}: unknown key {', '.join(sorted(unknown))}")
    cls = _load_class(entry.get("class_name"), where)
    config = dict(entry.get("config") or {})
    try:
        if hasattr(cls, "generate_response"):
            _check_contract(cls, where)
            interaction: BaseInteraction = cls({"name": entry["name"], **config})
            return InteractionUser(interaction)
        user: SimulatedUser = cls(**_connected(config, where, connect))
    except InteractionConfigError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise InteractionConfigError(f"{where}: its config does not fit: {error}") from error
    if not hasattr(user, "reply"):
        raise InteractionConfigError(
            f"{where}: {cls.__name__} has neither reply nor generate_response"
        )
    return user


def _check_contract(cls: Any, where: str) -> None:
    missing = [name for name in _CONTRACT if not hasattr(cls, name)]
    if missing:
        raise InteractionConfigError(
            f"{where}: {cls.__name__} has generate_response but lacks {', '.join(missing)}; "
            "derive it from interaction.contract.BaseInteraction"
        )


def _connected(config: dict[str, Any], where: str, connect: Connect | None) -> dict[str, Any]:
    """Return a config with its endpoint, if it has one, made into a chat model."""
    if "endpoint" not in config:
        return config
    endpoint = config.pop("endpoint")
    if not isinstance(endpoint, Mapping):
        raise InteractionConfigError(f"{where}: endpoint must be a mapping, got {endpoint!r}")
    if connect is None:
        raise InteractionConfigError(f"{where}: has an endpoint, but nothing connects one here")
    return {**config, "chat": connect(endpoint)}


def _load_class(dotted: object, where: str) -> Any:
    if not isinstance(dotted, str) or "." not in dotted:
        raise InteractionConfigError(f"{where}: class_name must be module.Class, got {dotted!r}")
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InteractionConfigError(f"{where}: class_name {dotted}: {error}") from error
