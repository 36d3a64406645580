"""How well a simulated user plays a person: measures over its conversations, with intervals.

Every measure has a value for a conversation, or none where it says nothing:

| measure | value for a conversation | conversations it is read from |
|---|---|---|
| role_inversion, leakage, repetition, restart, invented_facts, language | share of the user's turns with that fault (interaction/drift.py) | all |
| empty_or_malformed | share of the turns asked for that are empty, malformed or failed | all |
| withheld | share of the facts it was asked for, and answered to, that it had not told by the end | cooperative assistants |
| early_stop | 1 if the user left before it had told all and got an answer to it | cooperative assistants; leaving one that asks nothing, insists or is rude is right |
| never_stopping | 1 if the user had the answer that respects all it told and stayed | cooperative ones in which the user had a turn after such an answer |
| done_agreement | 1 if all was told and respected when the user left | cooperative ones that the user ended; elsewhere giving up is right and looks the same |
| words_per_turn, seconds_per_turn | mean over the user's turns | all |
| cost_per_turn | mean cost, in the prices' currency | those whose usage has a cost |

Goals that are not divided into facts, and users that do not speak English (in which facts are
read), have no withheld, early_stop, never_stopping or done_agreement.

Promises: pure, from the trials alone; intervals are over conversations. Knows nothing of
thresholds, files or how trials are played.
"""  # noqa: E501 - a table's rows are one line each

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from evaluation.bootstrap import Interval, mean_interval
from evaluation.scripted_assistants import COOPERATIVE, told_facts
from evaluation.user_trial import Trial
from interaction.agenda import questions_for, respects
from interaction.conversation import Conversation
from interaction.drift import Drift

OVERALL = "overall"
Measure = Callable[[Trial], float | None]


def _share_of(drift: Drift) -> Measure:
    def share(trial: Trial) -> float | None:
        if not trial.turns:
            return None
        return fmean(any(f.drift is drift for f in turn.findings) for turn in trial.turns)

    return share


def _unusable(trial: Trial) -> float:
    empty = [any(f.drift is Drift.EMPTY for f in turn.findings) for turn in trial.turns]
    return fmean([*empty, True] if trial.failure else empty)


def _is_satisfied(trial: Trial, conversation: Conversation) -> bool:
    """Return whether the user has told all, and the last answer before its turn respects it."""
    answers = conversation.said_by("assistant")
    facts = trial.task.goal.facts
    return (
        len(told_facts(trial.task, conversation)) == len(facts)
        and bool(answers)
        and all(respects(fact, answers[-1]) for fact in facts)
    )


def _asks_for_judgement(trial: Trial) -> bool:
    readable = bool(trial.task.goal.facts) and trial.language == "en"
    return readable and trial.assistant in COOPERATIVE


def _withheld(trial: Trial) -> float | None:
    if not _asks_for_judgement(trial):
        return None
    turns = trial.conversation.messages
    answered = [m.content for m, after in pairwise(turns) if after.role == "user"]
    slots = {s for text in answered for q in questions_for(trial.task.goal, text) for s in q.slots}
    asked = [fact for fact in trial.task.goal.facts if fact.slot in slots]
    told = told_facts(trial.task, trial.conversation)
    return fmean(fact not in told for fact in asked) if asked else None


def _early_stop(trial: Trial) -> float | None:
    if not _asks_for_judgement(trial) or trial.failure:
        return None
    return float(trial.done and not _is_satisfied(trial, trial.conversation))


def _never_stopping(trial: Trial) -> float | None:
    if not _asks_for_judgement(trial):
        return None
    messages = trial.conversation.messages
    heard = (Conversation(messages[:n]) for n, m in enumerate(messages) if m.role == "user")
    if not any(_is_satisfied(trial, conversation) for conversation in heard):
        return None
    return float(not trial.done)


def _done_agreement(trial: Trial) -> float | None:
    if not _asks_for_judgement(trial) or not trial.done:
        return None
    return float(_is_satisfied(trial, trial.conversation))


def _words_per_turn(trial: Trial) -> float | None:
    return fmean(len(turn.text.split()) for turn in trial.turns) if trial.turns else None


def _seconds_per_turn(trial: Trial) -> float | None:
    return fmean(turn.seconds for turn in trial.turns) if trial.turns else None


def _cost_per_turn(trial: Trial) -> float | None:
    if not any("cost" in turn.usage for turn in trial.turns):
        return None
    return fmean(turn.usage.get("cost", 0.0) for turn in trial.turns)


MEASURES: Mapping[str, Measure] = {
    "role_inversion": _share_of(Drift.ROLE_INVERSION),
    "leakage": _share_of(Drift.LEAKAGE),
    "repetition": _share_of(Drift.REPETITION),
    "restart": _share_of(Drift.RESTART),
    "empty_or_malformed": _unusable,
    "invented_facts": _share_of(Drift.INVENTED),
    "language": _share_of(Drift.LANGUAGE),
    "withheld": _withheld,
    "early_stop": _early_stop,
    "never_stopping": _never_stopping,
    "done_agreement": _done_agreement,
    "words_per_turn": _words_per_turn,
    "seconds_per_turn": _seconds_per_turn,
    "cost_per_turn": _cost_per_turn,
}


def measure_trials(trials: Sequence[Trial]) -> dict[str, dict[str, Interval]]:
    """Return every measure by assistant, and over all of them as "overall".

    A measure that says nothing about any of an assistant's conversations is absent.
    """
    groups: dict[str, list[Trial]] = {OVERALL: list(trials)}
    for trial in trials:
        groups.setdefault(trial.assistant, []).append(trial)
    return {name: _measured(group) for name, group in groups.items()}


def _measured(trials: Sequence[Trial]) -> dict[str, Interval]:
    measured = {}
    for name, measure in MEASURES.items():
        values = [value for value in map(measure, trials) if value is not None]
        if values:
            measured[name] = mean_interval(values)
    return measured


def worst_trial(trials: Sequence[Trial], name: str) -> Trial | None:
    """Return the conversation that is worst by a measure; None where it says nothing of any."""
    measured = [(value, t) for t in trials if (value := MEASURES[name](t)) is not None]
    if not measured:
        return None
    choose = min if name == "done_agreement" else max
    return choose(measured, key=lambda pair: pair[0])[1]
