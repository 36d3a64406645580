"""What of the goal a user's turn states that nobody asked for, and what contradicts the goal.

A turn seldom states a fact in the goal's own words, so four content words of it in a row, or a
number of it that has not come up yet, count as stating it too.

Promises: pure; what the assistant, the request or an asked-for fact already says is never a
leak. Knows nothing of reasons or models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from interaction.agenda import is_told, questions_for
from interaction.conversation import Conversation
from interaction.task import Fact, Task
from interaction.wording import mentions, mentions_any, mentions_half, sentences, words

_RUN = 4
_WORTH_KEEPING = 8  # runs of a goal below which there is nothing to keep back
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SMALL = 10  # numbers below it say nothing by themselves: "three options"
# Said of what is not so, or of what the assistant did.
_NEGATED = re.compile(
    r"\b(?:not|no|never|rather than|instead of|neither|nor|without)\b|n't\b|"
    r"\byou(?:'ve| have)? (?:said|wrote|booked|put|suggested?|assumed?|mentioned|picked|chose|"
    r"took)\b",
    re.I,
)
_LIGHT = frozenset(
    """
    a about all also am an and any are as at be been but by can could do does for from had has
    have he her his i i'd i'm i've if in into is it it's its just like me more my need no not of
    on or our she should so some than that the their them there they this to too up us very
    want was we were what when which who will with would you your
    """.split()
)


def leaked(task: Task, conversation: Conversation, text: str) -> tuple[Fact, ...]:
    """Return the facts that `text` states too many: not asked for, over what may be volunteered.

    One fact may always be volunteered, two after an open question.
    """
    last = conversation.last
    said = last.content if last is not None and last.role == "assistant" else ""
    earlier = conversation.said_by("user")
    questions = questions_for(task.goal, said)
    new = [fact for fact in task.goal.facts if not _was_told(fact, earlier)]
    asked = {slot for question in questions for slot in question.slots}
    asked |= {f.slot for f in new if any(mentions_half(q.text, f.value) for q in questions)}
    unasked = [fact for fact in new if fact.slot not in asked]
    known = [str(task.metadata.get("request", "")), *conversation.said_by("assistant"), *earlier]
    known += [fact.statement for fact in task.goal.facts if fact not in unasked]
    extra = _stated(unasked, text, known)
    allowed = 2 if any(question.is_open for question in questions) else 1
    return tuple(extra) if len(extra) > allowed else ()


def tells_all(task: Task, conversation: Conversation, text: str) -> bool:
    """Return whether an opening tells most of a goal that is not divided into facts."""
    if task.goal.facts or conversation.said_by("user"):
        return False
    goal = _runs(task.goal.summary) - _runs(str(task.metadata.get("request", "")))
    return len(goal) >= _WORTH_KEEPING and 2 * len(goal & _runs(text)) > len(goal)


def _was_told(fact: Fact, earlier: Sequence[str]) -> bool:
    return any(is_told(fact, turn) or _run_in_common(fact.statement, turn, ()) for turn in earlier)


def _stated(facts: Sequence[Fact], text: str, known: Sequence[str]) -> list[Fact]:
    """Return the facts that a text states and `known` does not."""
    plainly = [f for f in facts if is_told(f, text) and not _one_mentions(known, f.value)]
    known = [*known, *(fact.statement for fact in plainly)]
    loosely = [
        fact
        for fact in facts
        if fact not in plainly
        and (_run_in_common(fact.statement, text, known) or _number_in_common(fact, text, known))
    ]
    return plainly + loosely


def _one_mentions(texts: Sequence[str], phrase: str) -> bool:
    """Return whether one of `texts` mentions `phrase`."""
    return any(mentions(text, phrase) for text in texts)


def _run_in_common(statement: str, text: str, known: Sequence[str]) -> bool:
    runs = _runs(statement) & _runs(text)
    return any(not any(run in _runs(other) for other in known) for run in runs)


def _runs(text: str) -> set[tuple[str, ...]]:
    content = _content(text)
    return {tuple(content[i : i + _RUN]) for i in range(len(content) - _RUN + 1)}


def _content(text: str) -> list[str]:
    """Return a text's words that carry its meaning, in order."""
    return [word for word in words(text) if word not in _LIGHT]


def _number_in_common(fact: Fact, text: str, known: Sequence[str]) -> bool:
    common = _numbers(fact.statement) & _numbers(text)
    common -= {number for other in known for number in _numbers(other)}
    if any(number >= _SMALL for number in common):
        return True
    new = set(_content(fact.statement)) - {w for other in known for w in words(other)}
    about_it = {word for word in new & set(words(text)) if not _NUMBER.search(word)}
    return bool(common and about_it)


def _numbers(text: str) -> set[float]:
    plain = (found.replace(",", "") for found in _NUMBER.findall(text))
    return {float(number) for number in plain if number.count(".") <= 1}


def invented(task: Task, text: str) -> tuple[tuple[Fact, str], ...]:
    """Return the facts of which `text` states a wrong value, each with that value."""
    stated = " \n".join(s for s in sentences(text) if "?" not in s and not _NEGATED.search(s))
    found = []
    for fact in task.goal.facts:
        if mentions_any(text, (fact.value, *fact.accepted)):
            continue
        wrong = [a for a in fact.alternatives if mentions(stated, a) and not _in_goal(task, a)]
        found += [(fact, wrong[0])] if wrong else []
    return tuple(found)


def _in_goal(task: Task, value: str) -> bool:
    """Return whether the value is said somewhere in the goal after all, of another slot."""
    own = [task.goal.summary, str(task.metadata.get("request", ""))]
    return _one_mentions([*own, *(fact.statement for fact in task.goal.facts)], value)
