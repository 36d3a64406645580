"""verl's replay buffer for CollabLLM: what goes from a finished rollout into training.

It is where a step's replies are together for the first time, in one process, so here replies
without a reward are left out (group_choice.py), the step's conversations are written and its
reward metrics handed to verl's loggers.

Promises: nothing without a reward reaches the trainer; the run stops past the failure rate.
Knows nothing of how replies are played or scored.
"""

from __future__ import annotations

from typing import Any, cast

import transfer_queue as tq
from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from recipe.collabllm.conversation_log import write_step
from recipe.collabllm.group_choice import TooManyFailures, check_failures, step_metrics, trained
from recipe.collabllm.record import ReplyRecord
from reward.registry import make_metrics

_POLL_SECONDS = 0.05  # verl's own 2 s would be a fifth of a step on a CPU


class CollabLLMSampler(ReplayBuffer):  # type: ignore[misc]  # verl ships no types
    """Chooses among the replies of a step.

    Set in `trainer.v1.sampler.sampler_kwargs`: `run_dir`, `K`, `mean_K` (with
    K=auto), `max_failure_rate`, `metrics` as in `collabllm.metrics`, and `n` and `val_n`, how many
    replies verl asks for each prompt.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "poll_interval": _POLL_SECONDS})
        own = self.sampler_kwargs
        self._run_dir = str(own.run_dir)
        self._K = int(own.mean_K if own.K == "auto" else own.K)
        self._max_failure_rate = float(own.max_failure_rate)
        chosen = cast(dict[str, Any], OmegaConf.to_container(own.metrics, resolve=True))
        self._metrics = make_metrics(chosen)
        self._replies = {"train": int(own.n), "val": int(own.val_n)}

    def sample(
        self, global_steps: int, partition_id: str, batch_size: int
    ) -> tuple[KVBatchMeta, dict[str, float]]:
        """Return the batch to train on (or to report in validation) and its metrics.

        Raises:
            TooManyFailures: If too many futures failed, or nothing is left to train on.
        """
        batch, metrics = super().sample(global_steps, partition_id, batch_size)
        records = read_records(batch)
        split = "train" if partition_id == "train" else "validation"
        write_step(self._run_dir, split, global_steps, sorted(records, key=_order))
        lost = batch_size * self._replies[partition_id] - len(records)
        rate = check_failures(records, lost, self._K, self._max_failure_rate)
        keep = trained(records) if split == "train" else [r.mr is not None for r in records]
        if not any(keep):
            raise TooManyFailures(
                f"step {global_steps}: no reply has a reward to compare; see "
                f"{self._run_dir}/conversations/{split} for the reasons"
            )
        told = step_metrics(records, lost, rate, self._metrics)
        return _only(batch, keep), {**metrics, **told}


def read_records(batch: KVBatchMeta) -> list[ReplyRecord]:
    """Return the scored record of each reply in a batch."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"]
    )
    # What the queue hands back is a list of dicts or of wrappers around them.
    extra_fields = [getattr(item, "data", item) for item in data["extra_fields"]]
    return [ReplyRecord.from_json(e["reward_extra_info"]["record"]) for e in extra_fields]


def _order(record: ReplyRecord) -> tuple[str, str, int]:
    return record.task_id, record.uid, record.session


def _only(batch: KVBatchMeta, keep: list[bool]) -> KVBatchMeta:
    """Return the batch without the replies not to keep, which are taken out of the queue."""
    dropped = [key for key, kept in zip(batch.keys, keep, strict=True) if not kept]
    if not dropped:
        return batch
    tq.kv_clear(keys=dropped, partition_id=batch.partition_id)
    return KVBatchMeta(
        partition_id=batch.partition_id,
        keys=[key for key, kept in zip(batch.keys, keep, strict=True) if kept],
        tags=[tag for tag, kept in zip(batch.tags, keep, strict=True) if kept],
    )
