"""Run as a script: engine against actor, on the same tokens. Prints JSON.

    VERL_PLATFORM=cpu python -m tests.serving.verl_cpu.actor_log_probs MODEL float32|bfloat16

The engine generates replies that share prompts; verl's FSDP2 actor, made as its workers make it,
computes their log-probabilities, once as this project lays batches out and once as verl does.
"""

from __future__ import annotations

import json
import os
import sys

import torch
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorData

os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
os.environ["DIST_INIT_METHOD"] = "tcp://127.0.0.1:0"
TEMPERATURE = 1.0


def actor(model: str, dtype: str):  # type: ignore[no-untyped-def]
    """Return verl's engine for the actor."""
    import verl  # noqa: F401  (loads the plug-in)
    from verl.trainer.config import CheckpointConfig
    from verl.utils.distributed import initialize_global_process_group_ray
    from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
    from verl.workers.engine.base import EngineRegistry

    initialize_global_process_group_ray()
    precision = {"param_dtype": dtype, "reduce_dtype": "float32", "buffer_dtype": "float32"}
    engine = EngineRegistry.new(
        model_type="language_model",
        backend="fsdp2",
        model_config=HFModelConfig(
            path=model,
            external_lib="serving.verl_cpu.fsdp_engine",
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "eager"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2", dtype=dtype, mixed_precision=precision, use_torch_compile=False,
            use_remove_padding=False, use_dynamic_bsz=True, infer_max_token_len_per_gpu=8192,
        ),
        optimizer_config=FSDPOptimizerConfig(lr=1e-5, total_training_steps=1),
        checkpoint_config=CheckpointConfig(),
    )  # fmt: skip
    engine.model_config.model_type = "language_model"
    engine.initialize()
    return engine


def batch(sequences: list[tuple[list[int], list[int]]]) -> TensorDict:
    """Return prompts and replies as verl's trainer hands them over."""
    nested = lambda parts: torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    whole = [torch.tensor(p + r) for p, r in sequences]
    masks = [torch.ones(len(r), dtype=torch.long) for _, r in sequences]
    data = TensorDict(
        {
            "input_ids": nested(whole),
            "position_ids": nested([torch.arange(len(w)) for w in whole]),
            "response_mask": nested(masks),
            "loss_mask": nested(masks),
        },
        batch_size=len(sequences),
    )
    settings = {
        "temperature": TEMPERATURE, "use_dynamic_bsz": True, "max_token_len_per_gpu": 8192,
        "use_remove_padding": False, "compute_loss": False, "calculate_entropy": True,
    }  # fmt: skip
    for name, value in settings.items():
        data[name] = NonTensorData(value)
    return data


def reply_values(output, sequences, name: str) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """Return the values of the replies' tokens, read where verl's losses read them."""
    rows = output["model_output"][name].unbind()
    return torch.cat(
        [row[len(p) - 1 : len(p) + len(r) - 1] for row, (p, r) in zip(rows, sequences, strict=True)]
    ).float()


def main() -> None:
    """Compare and print the mean absolute differences."""
    model, dtype = sys.argv[1:]
    trainer = actor(model, dtype)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from serving.cpu_engine import CpuEngine
    from serving.generation import Generation, SamplingParams

    tokenizer = AutoTokenizer.from_pretrained(model)
    engine = CpuEngine(AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype)))
    engine.update_weights(
        (name, tensor.to(getattr(torch, dtype)))
        for name, tensor in trainer.get_per_tensor_param()[0]
    )
    done: dict[str, tuple[list[int], Generation]] = {}
    for request in ("Plan a party for me.", "I want to learn a language.", "Which laptop?"):
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": request}], add_generation_prompt=True
        )["input_ids"]
        for n in range(4):
            params = SamplingParams(
                24 + 8 * n, TEMPERATURE, seed=n, stop_token_ids=frozenset({tokenizer.eos_token_id})
            )
            keep = lambda g, key=f"{request}{n}", ids=ids: done.__setitem__(key, (list(ids), g))
            engine.add(f"{request}{n}", ids, params, keep)
    while engine.has_work:
        engine.step()
    sequences = [(prompt, list(g.token_ids)) for prompt, g in done.values()]
    generated = torch.tensor([p for _, g in done.values() for p in g.log_probs])

    shared = trainer.infer_batch(batch(sequences))
    type(trainer)._can_share_prompts = lambda self, micro_batch: False
    apart = trainer.infer_batch(batch(sequences))

    def difference(a: torch.Tensor, b: torch.Tensor) -> float:
        return float((a - b).abs().mean())

    own = reply_values(shared, sequences, "log_probs")
    theirs = reply_values(apart, sequences, "log_probs")
    told = {
        "tokens": len(generated),
        "engine_actor": difference(generated, own),
        "engine_verl": difference(generated, theirs),
        "shared_apart": difference(own, theirs),
        "entropy_shared_apart": difference(
            reply_values(shared, sequences, "entropy"), reply_values(apart, sequences, "entropy")
        ),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
