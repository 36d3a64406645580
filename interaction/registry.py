"""Simulated users by name, from the YAML that verl had up to 0.7.

    interaction:
      - name: agenda
        class_name: interaction.agenda_user.AgendaUser
        config: {}

Promises: an entry is checked before anything runs and a fault names it; a class with the four
interaction methods becomes a user by itself. Knows nothing of particular users.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from interaction.contract import BaseInteraction, InteractionUser
from interaction.user import SimulatedUser


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


def load_users(entries: Sequence[Mapping[str, Any]], source: str) -> dict[str, SimulatedUser]:
    """Make the users of all entries.

    Args:
        entries: Mappings with `name`, `class_name` and `config`.
        source: Where they come from, for messages.

    Raises:
        InteractionConfigError: If an entry is malformed, named twice, or its class cannot be
            loaded or made.
    """
    users: dict[str, SimulatedUser] = {}
    for number, entry in enumerate(entries, start=1):
        where = f"{source}: interaction {number}"
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InteractionConfigError(f"{where}: has no name")
        if name in users:
            raise InteractionConfigError(f"{where}: the name {name!r} is taken")
        users[name] = _make_user(entry, f"{where} ({name})")
    return users


def _make_user(entry: Mapping[str, Any], where: str) -> SimulatedUser:
    unknown = set(entry) - {"name", "class_name", "config"}
    if unknown:
        raise InteractionConfigError(f"{where}: unknown key {', '.join(sorted(unknown))}")
    cls = _load_class(entry.get("class_name"), where)
    config = dict(entry.get("config") or {})
    try:
        if hasattr(cls, "generate_response"):
            interaction: BaseInteraction = cls({"name": entry["name"], **config})
            return InteractionUser(interaction)
        user: SimulatedUser = cls(**config)
    except (TypeError, ValueError, KeyError) as error:
        raise InteractionConfigError(f"{where}: its config does not fit: {error}") from error
    if not hasattr(user, "reply"):
        raise InteractionConfigError(
            f"{where}: {cls.__name__} has neither reply nor generate_response"
        )
    return user


def _load_class(dotted: object, where: str) -> Any:
    if not isinstance(dotted, str) or "." not in dotted:
        raise InteractionConfigError(f"{where}: class_name must be module.Class, got {dotted!r}")
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InteractionConfigError(f"{where}: class_name {dotted}: {error}") from error
