"""The embedded engine: many sequences decode together and join and leave mid-way.

Promises: token ids in, token ids and log-probabilities out, for any Hugging Face causal
model with full attention; a prompt prefix that another sequence has computed is copied, not
computed; new weights drop every cached key and value. Each `step` is one token for all.
Knows nothing of text, threads or transports; one thread at a time may call it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from transformers import PreTrainedModel

from serving.causal_model import check_attention_is_full, read_head
from serving.generation import EngineCounters, FinishReason, Generation, SamplingParams
from serving.prefix_store import PrefixStore, common_prefix
from serving.slot_cache import GROUPED_ATTENTION, SlotCache
from serving.token_sampling import sample_tokens

OnFinished = Callable[[Generation], None]

# A sequence waits for one that joins just before it when that saves at least this many tokens.
_WORTH_WAITING = 16


@dataclass(eq=False)
class _Sequence:
    """One request: its tokens, and how many of them have keys and values in its row."""

    request_id: str
    prompt: tuple[int, ...]
    params: SamplingParams
    on_finished: OnFinished
    tokens: list[int] = field(init=False)
    uniform: Callable[[], float] = field(init=False)
    log_probs: list[float] = field(default_factory=list)
    cached: int = 0
    prefilled: int = 0
    shared: int = 0

    def __post_init__(self) -> None:
        self.tokens = list(self.prompt)
        self.uniform = random.Random(self.params.seed).random

    @property
    def pending(self) -> int:
        """Tokens that the model has yet to read."""
        return len(self.tokens) - self.cached

    @property
    def longest(self) -> int:
        return len(self.prompt) + self.params.max_tokens


class CpuEngine:
    """Continuous batching over one Hugging Face model.

    Args:
        model: A causal language model in eval mode, on the CPU.
        max_sequences: Most sequences that decode together; more wait their turn.
        max_length: Most tokens of prompt and generation together.
        cache_bytes: Most memory for the keys and values of running sequences; beyond it
            sequences wait. One sequence of `max_length` must fit.
        prefix_bytes: Most memory for those of finished ones; 0 shares among running ones only.
        prefill_tokens: Most prompt tokens (padding included) computed in one forward pass.

    Raises:
        ValueError: If the model cannot be run this way or the memory is too small.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_sequences: int = 64,
        max_length: int = 2048,
        cache_bytes: int = 1 << 30,
        prefix_bytes: int = 1 << 29,
        prefill_tokens: int = 1024,
    ) -> None:
        check_attention_is_full(model, max_length)
        model.set_attn_implementation(GROUPED_ATTENTION)
        self._model = model.eval()
        self._head = read_head(model)
        self._cache = SlotCache(model.config.get_text_config(), model.dtype)
        if self._cache.bytes_per_token * max_length > cache_bytes:
            raise ValueError(
                f"one sequence of {max_length} tokens takes "
                f"{self._cache.bytes_per_token * max_length} bytes of cache, more than "
                f"cache_bytes={cache_bytes}: raise cache_bytes or lower max_length"
            )
        self._prefixes = PrefixStore(prefix_bytes)
        self._waiting: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []
        self._max_sequences = max_sequences
        self._max_length = max_length
        self._cache_bytes = cache_bytes
        self._prefill_tokens = prefill_tokens
        self.counters = EngineCounters()

    @property
    def has_work(self) -> bool:
        """Return whether a `step` would do anything."""
        return bool(self._waiting or self._running)

    def add(
        self,
        request_id: str,
        prompt: Iterable[int],
        params: SamplingParams,
        on_finished: OnFinished,
    ) -> None:
        """Queue a request; `on_finished` is called once, within a later `step` or `abort`.

        Raises:
            ValueError: If the prompt is empty, too long, or has an id the model does not know.
        """
        ids = tuple(prompt)
        vocabulary = self._model.config.get_text_config().vocab_size
        if not ids:
            raise ValueError("the prompt is empty")
        if len(ids) >= self._max_length:
            raise ValueError(
                f"a prompt of {len(ids)} tokens leaves no room to generate within "
                f"max_length={self._max_length}"
            )
        if not 0 <= min(ids) <= max(ids) < vocabulary:
            raise ValueError(f"the prompt has a token id outside 0..{vocabulary - 1}")
        room = self._max_length - len(ids)
        if params.max_tokens > room:
            params = SamplingParams(**{**vars(params), "max_tokens": room})
        self._waiting.append(_Sequence(request_id, ids, params, on_finished))

    @torch.inference_mode()
    def abort(self, request_id: str) -> bool:
        """End a request now with what it has; return whether it was there."""
        for sequence in list(self._waiting):
            if sequence.request_id == request_id:
                self._waiting.remove(sequence)
                self._report(sequence, FinishReason.ABORTED)
                return True
        for row, sequence in enumerate(self._running):
            if sequence.request_id == request_id:
                self._leave(row)
                self._report(sequence, FinishReason.ABORTED)
                return True
        return False

    def abort_all(self) -> int:
        """End every request; return how many there were."""
        sequences = [*self._running, *self._waiting]
        self._running.clear()
        self._waiting.clear()
        for sequence in sequences:
            self._report(sequence, FinishReason.ABORTED)
        return len(sequences)

    def clear_prefixes(self) -> None:
        """Forget the keys and values of finished sequences."""
        self._prefixes.clear()

    def release_memory(self) -> None:
        """Forget all keys and values; running sequences are computed anew when stepped."""
        self._forget()
        self._cache.release()

    @torch.inference_mode()
    def update_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Copy new weights in and drop every key and value that the old ones computed.

        Raises:
            ValueError: If a name or shape is not the model's, or a parameter is left out.
        """
        own = dict(self._model.named_parameters(remove_duplicate=False))
        missing = set(dict(self._model.named_parameters()))
        for name, tensor in weights:
            if name not in own or own[name].shape != tensor.shape:
                expected = tuple(own[name].shape) if name in own else "no such parameter"
                raise ValueError(f"weight {name} {tuple(tensor.shape)}: expected {expected}")
            own[name].copy_(tensor)
            missing.discard(name)
        if missing:
            raise ValueError(f"weights left out: {', '.join(sorted(missing)[:5])}")
        self._head = read_head(self._model)
        self._forget()
        self.counters.weight_updates += 1

    @torch.inference_mode()
    def step(self) -> None:
        """Let waiting sequences join, compute their prompts, then one token for everybody."""
        while self._admit():
            self._prefill()
        self._prefill()
        if self._running:
            self._decode()

    def _forget(self) -> None:
        self._prefixes.clear()
        for sequence in self._running:
            sequence.cached = 0

    def _admit(self) -> bool:
        """Give rows to waiting sequences, longest shared prefix copied in.

        A sequence that begins like one admitted in this very round waits for the next: by then
        the shared part is computed and is copied instead of computed twice.

        Returns:
            Whether another round would admit more.
        """
        joined = len(self._running)
        deferred: list[_Sequence] = []
        while self._waiting and len(self._running) + len(deferred) < self._max_sequences:
            sequence = self._waiting.popleft()
            if not self._fits(sequence):
                self._waiting.appendleft(sequence)
                break
            shared, copy = self._find_prefix(sequence, joined)
            fresh = self._running[joined:]
            if any(
                common_prefix(s.prompt, sequence.prompt) >= shared + _WORTH_WAITING for s in fresh
            ):
                deferred.append(sequence)
                continue
            row = len(self._running)
            self._running.append(sequence)
            self._reserve()
            copy(row)
            sequence.cached = shared
            sequence.shared += shared
        self._waiting.extendleft(reversed(deferred))
        return bool(deferred)

    def _fits(self, sequence: _Sequence) -> bool:
        """Return whether the rectangle of rows and positions stays within the budget."""
        length = max([sequence.longest, *(s.longest for s in self._running)])
        rows = len(self._running) + 1
        return rows == 1 or rows * length * self._cache.bytes_per_token <= self._cache_bytes

    def _reserve(self) -> None:
        self._cache.reserve(len(self._running), max(s.longest for s in self._running))

    def _find_prefix(self, sequence: _Sequence, rows: int) -> tuple[int, Callable[[int], None]]:
        """Return the longest computed prefix and what copies it into a row.

        The last prompt token is always left to compute: its logits are the first to sample.
        """
        limit = len(sequence.prompt) - 1
        stored, entries = self._prefixes.longest(sequence.prompt[:limit])
        best, best_row = stored, None
        for row, other in enumerate(self._running[:rows]):
            cached = tuple(other.tokens[: min(other.cached, limit)])
            shared = common_prefix(cached, sequence.prompt)
            if shared > best:
                best, best_row = shared, row
        if best_row is not None:
            source = best_row
            return best, lambda target: self._cache.copy(source, target, best)
        if entries is not None:
            kept = entries
            return best, lambda target: self._cache.write(target, kept)
        return 0, lambda target: None

    def _prefill(self) -> None:
        """Compute prompts up to their last token; rows that need it are the last ones."""
        while True:
            rows = [row for row, s in enumerate(self._running) if s.pending > 1]
            if not rows:
                return
            start = rows[0]
            length = min(self._running[start].pending - 1, self._prefill_tokens)
            stop = start + 1
            while stop < len(self._running) and self._running[stop].pending > 1:
                longer = min(max(length, self._running[stop].pending - 1), self._prefill_tokens)
                if longer * (stop + 1 - start) > self._prefill_tokens:
                    break
                length = longer
                stop += 1
            self._prefill_rows(slice(start, stop), length)

    def _prefill_rows(self, rows: slice, length: int) -> None:
        """Read up to `length` pending tokens of each row but the last; pad on the right.

        Padding writes entries past a row's own end: nobody sees them, and the row's next
        tokens overwrite them.
        """
        group = self._running[rows]
        counts = [min(s.pending - 1, length) for s in group]
        ids = torch.zeros(len(group), length, dtype=torch.long)
        for i, (sequence, count) in enumerate(zip(group, counts, strict=True)):
            ids[i, :count] = torch.tensor(sequence.tokens[sequence.cached :][:count])
        first = torch.tensor([s.cached for s in group])
        self._cache.reserve(rows.stop, int(first.max()) + length)
        positions = first[:, None] + torch.arange(length)
        self._forward(self._model.base_model, rows, ids, positions)
        for sequence, count in zip(group, counts, strict=True):
            sequence.cached += count
            sequence.prefilled += count
            self.counters.prefilled_tokens += count

    def _decode(self) -> None:
        """Read everybody's last token and sample the next."""
        ids = torch.tensor([[s.tokens[-1]] for s in self._running])
        positions = torch.tensor([[s.cached] for s in self._running])
        rows = slice(0, len(self._running))
        if self._head is None:
            logits = self._forward(self._model, rows, ids, positions)[:, -1]
        else:
            hidden = self._forward(self._model.base_model, rows, ids, positions)[:, -1]
            logits = self._head(hidden)
        tokens, log_probs = sample_tokens(
            logits,
            [s.params for s in self._running],
            [s.uniform() for s in self._running],
        )
        for sequence, token, log_prob in zip(self._running, tokens, log_probs, strict=True):
            sequence.cached += 1
            sequence.tokens.append(token)
            sequence.log_probs.append(log_prob)
        self.counters.decoded_tokens += len(tokens)
        self._finish()

    def _forward(
        self, module: torch.nn.Module, rows: slice, ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        self.counters.forward_passes += 1
        mask = self._cache.select(rows, positions)
        output: tuple[torch.Tensor, ...] = module(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        return output[0]

    def _finish(self) -> None:
        """Let sequences that are done leave, from the last row to the first."""
        for row in reversed(range(len(self._running))):
            sequence = self._running[row]
            if sequence.tokens[-1] in sequence.params.stop_token_ids:
                reason = FinishReason.STOP
            elif len(sequence.log_probs) >= sequence.params.max_tokens:
                reason = FinishReason.LENGTH
            else:
                continue
            if self._prefixes.would_keep(sequence.cached * self._cache.bytes_per_token):
                tokens = tuple(sequence.tokens[: sequence.cached])
                self._prefixes.put(tokens, self._cache.read(row, sequence.cached))
            self._leave(row)
            self._report(sequence, reason)

    def _leave(self, row: int) -> None:
        """Free a row; the last row's sequence moves into it."""
        last = len(self._running) - 1
        if row != last:
            self._cache.copy(last, row, self._running[last].cached)
            self._running[row] = self._running[last]
        self._running.pop()

    def _report(self, sequence: _Sequence, reason: FinishReason) -> None:
        self.counters.finished[reason] += 1
        self.counters.shared_tokens += sequence.shared
        sequence.on_finished(
            Generation(
                token_ids=tuple(sequence.tokens[len(sequence.prompt) :]),
                log_probs=tuple(sequence.log_probs),
                finish_reason=reason,
                prefilled_tokens=sequence.prefilled,
                shared_tokens=sequence.shared,
            )
        )
