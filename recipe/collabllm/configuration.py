"""Composes the configuration from hydra's groups and `key=value` words.

Promises: a word that fits nothing is an error that names it and what comes near; nothing has
been started or written by then. Knows nothing of what the values mean.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recipe.collabllm.hardware import gpu_count, multiplies_bfloat16

_HERE = Path(__file__).parent


class ConfigurationError(ValueError):
    """The configuration cannot be composed; the message says which word is wrong."""


def load_configuration(words: Sequence[str]) -> DictConfig:
    """Return verl's configuration with ours, from `key=value` words.

    Args:
        words: As hydra takes them. `backend=` is added from the hardware if it is left out.

    Raises:
        ConfigurationError: If a word fits nothing.
    """
    _register_resolvers()
    words = list(words)
    backends = [w.partition("=")[2] for w in words if w.lstrip("+").startswith("backend=")]
    if not backends:
        backends = ["sglang" if gpu_count() else "cpu"]
        words.append(f"backend={backends[0]}")
    if backends[-1] == "cpu":
        # hydra imports verl for its search path, and verl chooses its platform when imported.
        os.environ.setdefault("VERL_PLATFORM", "cpu")
    with initialize_config_module(config_module="recipe.collabllm.config", version_base=None):
        try:
            config = compose(config_name="collabllm", overrides=words)
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigurationError(_explain(str(error), words)) from error
    _check_nothing_is_missing(config)
    return config


def save_configuration(config: DictConfig, path: Path) -> None:
    """Write the configuration, every reference resolved."""
    partial = path.with_name(f".{path.name}.partial")
    OmegaConf.save(config, partial, resolve=True)
    partial.replace(path)


def ray_folder(run_dir: str | Path) -> Path:
    """Return the folder for Ray's session of a run: short, for Unix sockets' names are."""
    name = hashlib.blake2b(str(Path(run_dir).absolute()).encode(), digest_size=4).hexdigest()
    return Path(tempfile.gettempdir()) / f"collabllm-{os.getuid()}-{name}"


def _register_resolvers() -> None:
    resolvers: dict[str, Callable[..., Any]] = {
        "collabllm_file": lambda name: str(_HERE / name),
        "collabllm_cpu_dtype": lambda: "bfloat16" if multiplies_bfloat16() else "float32",
        "collabllm_gpu_count": lambda: max(1, gpu_count()),
        "collabllm_ray_folder": lambda run_dir: str(ray_folder(run_dir)),
    }
    for name, resolver in resolvers.items():
        OmegaConf.register_new_resolver(name, resolver, replace=True)


def _check_nothing_is_missing(config: DictConfig) -> None:
    # verl leaves some of its own keys open that are not used, e.g. a reward model's.
    missing = [k for k in OmegaConf.missing_keys(config) if k.startswith(("collabllm.", "data."))]
    if missing:
        raise ConfigurationError(f"set {missing[0]}=VALUE: it has no default with these groups")


def _explain(reason: str, words: Sequence[str]) -> str:
    """Return hydra's reason in one line, with the keys or options that come near."""
    told = " ".join(reason.split())
    keys = {word: word.lstrip("+~").split("=")[0] for word in words}
    if "Could not find" in told:
        group = next((w for w, key in keys.items() if f"{key}/" in told), "")
        options = told.partition("Available options in")[2].partition("Config search path")[0]
        return f"{group}: no such choice; available: {options.partition(':')[2].strip()}"
    word = next((w for w, key in keys.items() if f"'{key}'" in told), None)
    if word is None or "Could not override" not in told:
        return told
    near = difflib.get_close_matches(keys[word], _all_keys(), n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{word}: there is no key {keys[word]!r}{hint} (a new key needs a + in front)"


def _all_keys() -> list[str]:
    config = compose(config_name="collabllm", overrides=["backend=cpu"])
    return _keys(OmegaConf.to_container(config, resolve=False), "")


def _keys(node: object, prefix: str) -> list[str]:
    if not isinstance(node, dict):
        return [prefix]
    own = [prefix] if prefix else []
    return own + [
        k for name, child in node.items() for k in _keys(child, f"{prefix}.{name}".lstrip("."))
    ]
