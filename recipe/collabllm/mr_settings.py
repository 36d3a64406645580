"""The settings of `collabllm mr`: training's defaults, changed by the command line.

Promises: what training's configuration says and the command line does not holds here too; hydra
and verl are not needed. Knows nothing of policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from recipe.collabllm.settings import Settings, read_settings

_CONFIG = Path(__file__).parent / "config"


def mr_settings(user: str, changes: Mapping[str, Any]) -> Settings:
    """Return checked settings.

    Args:
        user: A file of `config/interaction`, which says who the user is.
        changes: Keys of `collabllm` in `config/collabllm.yaml`.

    Raises:
        SettingsError: If a value cannot be used.
    """
    defaults = OmegaConf.create({"collabllm": OmegaConf.load(_CONFIG / "collabllm.yaml").collabllm})
    played_by = OmegaConf.load(_CONFIG / "interaction" / f"{user}.yaml")
    own = {"task": "given", "preset": "given", **changes}
    merged = OmegaConf.merge(defaults, played_by, {"collabllm": own})
    return read_settings(OmegaConf.to_container(merged.collabllm, resolve=True))
