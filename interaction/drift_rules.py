"""The rules of drift that need no goal: what is empty, said again, begun anew, the assistant's.

Promises: pure; every rule is precise rather than complete, so that what a person might well say
is let through. Knows nothing of reasons or models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from interaction.agenda import CLOSINGS
from interaction.conversation import Conversation
from interaction.task import Task
from interaction.wording import sentences

_LEFTOVER = re.compile(
    r"^\s*[{}]|</?think|<\|im_|\[/?INST\]|\"message\"\s*:|^\W*(?:so_far|thought|message|user|"
    r"assistant|human)\W{0,2}:",
    re.I,
)
# Followed by a stop or a request: "Hello Kitty" and "hi-fi" are answers.
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey there|good (?:morning|afternoon|evening|day)|greetings|hallo|guten "
    r"(?:tag|morgen|abend)|hola|buenos d[ií]as|buenas tardes|bonjour|bonsoir|salut)"
    r"(?:\s*(?:[!,.]|$)|\s+(?:there|again|i|i'm|i'd|can|could|ich|je|yo)\b)",
    re.I,
)
# "I said that already", "that doesn't fit": an answer to what was said, not a turn said again.
_INSISTS = re.compile(
    r"\b(?:already|again|as i said|i said|like i said|you left|still|actually)\b", re.I
)
_FEEDBACK = re.compile(r"\b(?:that|that's|this|you|mind)\b", re.I)
_OFFERS = re.compile(
    r"\bhow (?:can|may|could) i (?:help|assist)(?: you\b|\s*\?| today)|"
    r"\bwhat (?:can i|i can) (?:help you with|do for you)|\belse i can (?:help|assist|do for)\b|"
    r"\bi(?:'d| would| will|'ll| can|'m| am)(?: be)?(?: (?:more than )?(?:happy|glad))?"
    r"(?: to)? (?:help|assist) you\b|"
    r"\b(?:happy|glad) to (?:help|assist)(?: you\b|\s*[!.])|"
    r"\bi(?:'m| am) here to (?:help|assist)\b|"
    r"\blet me (?:help|assist|guide|walk) you\b|"
    r"\bhere(?:'s| is| are) (?:an?|your|some|three|five|\d+) (?:\w+[ -]){0,3}?"
    r"(?:plan|steps?|list|itinerary|outline|schedule|suggestions?|solution|tips|options|ideas|"
    r"recommendations?|breakdown|overview|guide)\b(?! (?:of |with )?(?:what )?(?:my|our|i|we)\b)|"
    r"\bi(?:'d| would)? (?:suggest|recommend) (?:you|that you|starting)\b|\bas an ai\b|"
    r"\bwie kann ich (?:ihnen|dir) helfen|\bhier ist (?:ein|dein|ihr) \w*plan|"
    r"\b(?:cómo|como) puedo ayudar|\bcomment puis-je (?:vous|t')\s?aider",
    re.I,
)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)]|step \d+|day \d+)\s*\S", re.I)
_TO_YOU = re.compile(
    r"\byou (?:should|could|can|need to|will need|may want|might want|must|have to)\b|"
    r"\byou'll (?:need|want)\b|\b(?:make|be) sure to\b|\bdon't forget to\b|\bremember to\b",
    re.I,
)
_ORDER = re.compile(
    r"^\W*(?:\d+[.)]\s*|(?:step|day) \d+\W*)?(?:first,? |then,? |next,? |finally,? )?(?:start|"
    r"begin|book|buy|pack|visit|check|add|mix|use|choose|pick|open|click|write|set|take|go|try|"
    r"plan|prepare|invite|order|reserve|create|find|keep|consider|explore|calculate|multiply|"
    r"divide|subtract)\b",
    re.I,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|my|me|we|our|us)\b", re.I)
_EQUATION = re.compile(
    r"\d\s*(?:[+*/\u00d7\u00f7]|\s-\s)\s*\$?\d[\d.,]*\s*=\s*\$?\d|\\boxed\{|^####", re.M
)
_ANSWERS = re.compile(
    r"\b(?:answer|result|total|solution)\s*(?:is|would be|comes to|=|:)\W*(-?[\d,]*\.?\d+)", re.I
)
_CODE = re.compile(r"^```", re.M)
_COPIED = 12  # words in a row that are no coincidence
_LIKE = 0.9


def is_empty(text: str) -> bool:
    """Return whether a turn says nothing, or holds what is left over of a format."""
    return not re.search(r"\w", text) or bool(_LEFTOVER.search(text))


def offers_help(text: str) -> bool:
    """Return whether a turn offers help or hands out a plan."""
    return bool(_OFFERS.search(text.replace("\u2019", "'")))


def gives_advice(text: str) -> bool:
    """Return whether a turn is a list of advice or a row of instructions."""
    items = [line for line in text.splitlines() if _ITEM.match(line)]
    orders = sum(bool(_ORDER.search(item) or _TO_YOU.search(item)) for item in items)
    # A list of wishes speaks of the one who has them.
    if len(items) >= 3 and orders >= 2 and not _FIRST_PERSON.search(text):
        return True
    return sum("?" not in s and bool(_TO_YOU.search(s)) for s in sentences(text)) >= 3


def answers_task(task: Task, conversation: Conversation, text: str) -> bool:
    """Return whether a turn works the task's answer out, unless that was said before."""
    known = [task.goal.summary, str(task.metadata.get("request", ""))]
    known += [message.content for message in conversation.messages]
    worked_out = any(
        pattern.search(text) and not any(pattern.search(other) for other in known)
        for pattern in (_EQUATION, _CODE)
    )
    return worked_out or _claims_number(task, known, text) or _copies_answer(task, known, text)


def _claims_number(task: Task, known: Sequence[str], text: str) -> bool:
    right = task.ground_truth.strip().replace(",", "")
    claimed = [found.replace(",", "") for found in _ANSWERS.findall(text)]
    alone = re.compile(rf"(?<!\d){re.escape(right)}(?!\d)")
    return right in claimed and not any(alone.search(other.replace(",", "")) for other in known)


def _copies_answer(task: Task, known: Sequence[str], text: str) -> bool:
    copied = _runs(task.ground_truth) & _runs(text)
    return bool(copied - {run for other in known for run in _runs(other)})


def _runs(text: str) -> set[tuple[str, ...]]:
    said = normalised(text)
    return {tuple(said[i : i + _COPIED]) for i in range(len(said) - _COPIED + 1)}


def begins_anew(task: Task, conversation: Conversation, text: str) -> bool:
    """Return whether a turn greets or opens the conversation again in its middle."""
    own = conversation.said_by("user")
    if not own:
        return False
    openings = [normalised(own[0]), normalised(str(task.metadata.get("request", "")))]
    said = normalised(text)
    return bool(_GREETING.match(text)) or any(
        len(opening) >= 4 and (_alike(said, opening) or said[: len(opening)] == opening)
        for opening in openings
    )


def says_again(conversation: Conversation, text: str) -> str | None:
    """Return whose turn this one repeats, "user" or "assistant", if it repeats one."""
    said = normalised(_without_closing(text))
    if len(said) <= 3:
        return None
    heard = conversation.last.content if conversation.last else ""
    if len(said) >= 6 and _alike(said, normalised(heard)):
        return "assistant"
    if _INSISTS.search(text) or (len(said) <= 8 and _FEEDBACK.search(text)):
        return None
    for before, turn in _exchanges(conversation)[1:]:
        # The same question may well get the same answer.
        if _alike(said, normalised(_without_closing(turn))) and not _alike(
            normalised(before), normalised(heard)
        ):
            return "user"
    return None


def _exchanges(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the user's turns, each behind the turn it answers."""
    messages = conversation.messages
    return [
        (messages[i - 1].content if i else "", message.content)
        for i, message in enumerate(messages)
        if message.role == "user"
    ]


def _without_closing(text: str) -> str:
    for closing in CLOSINGS:
        text = text.replace(closing, "")
    return text


def normalised(text: str) -> list[str]:
    """Return the words of a text without case or punctuation."""
    return re.findall(r"\w+(?:'\w+)*", text.lower().replace("\u2019", "'"))


def _alike(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two word sequences are nearly the same."""
    if not some or not others:
        return False
    return SequenceMatcher(a=some, b=others, autojunk=False).ratio() >= _LIKE
