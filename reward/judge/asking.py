"""Asking a model for verdicts until all are usable or the attempts are used up.

Promises: what was usable is kept and asked for no more; another attempt has another seed and
says what was wrong, in words of ours; nothing is made up for what is missing.
Knows nothing of conversations or metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from interaction.chat import ChatFailed, ChatModel, ChatUnreadable
from interaction.seeds import derive_seed
from reward.judge.form import Reading, answer_form, read_answer, salvaged
from reward.judge.prompt import JudgePrompt
from reward.judge.question import JudgeFailed, Question, Verdict


@dataclass(frozen=True)
class Answers:
    """What came of asking.

    Attributes:
        verdicts: By key.
        faults: Why there is none, by key.
        usage: What it cost, as `ChatAnswer.usage`, summed; `unreadable` counts answers that
            did not fit, whose tokens only the client's totals know.
    """

    verdicts: Mapping[str, Verdict]
    faults: Mapping[str, str]
    usage: Mapping[str, float]

    def verdict(self, key: str) -> Verdict:
        """Return a verdict.

        Raises:
            JudgeFailed: If there is none.
        """
        if key not in self.verdicts:
            raise JudgeFailed(f"no usable verdict: {self.faults.get(key, 'it was not asked for')}")
        return self.verdicts[key]


async def ask(
    model: ChatModel,
    prompt: JudgePrompt,
    asked: Mapping[str, Question],
    *,
    seed: int,
    attempts: int,
    max_tokens: int | None,
) -> Answers:
    """Ask for verdicts.

    Args:
        model: Who is asked.
        prompt: About what.
        asked: The questions by the key of their verdict.
        seed: Of the call.
        attempts: Calls at most, 1 or more.
        max_tokens: Budget of one answer; None for the endpoint's own.
    """
    verdicts: dict[str, Verdict] = {}
    faults: Mapping[str, str] = {}
    usage: Counter[str] = Counter()
    for attempt in range(attempts):
        missing = {key: question for key, question in asked.items() if key not in verdicts}
        if not missing:
            break
        messages = prompt.messages(missing, faults)
        again = derive_seed(seed, "judge", *missing, attempt)
        try:
            answer = await model.structured(
                messages, answer_form(missing), seed=again, max_tokens=max_tokens
            )
            reading = Reading(read_answer(answer.value), {})
            usage.update(answer.usage)
        except ChatUnreadable as error:
            reading = salvaged(error.text, missing)
            usage["unreadable"] += 1
        except ChatFailed as error:  # retried already, by who knows what is worth it
            return Answers(verdicts, dict.fromkeys(missing, str(error)), usage)
        verdicts |= reading.verdicts
        faults = reading.faults
    return Answers(verdicts, faults, usage)
