r"""The answer the policy finally gave: a number, an expression, a choice or a few words.

Over all turns, the first of these that there is:

1. the last answer given explicitly, in the latest turn that has one: `\boxed{...}`, "the (final)
   answer is ...", "Answer: ...", "#### ...";
2. the last number or formula of the latest turn that has one outside of a question, or in the
   same sentence the one after the last "=" ("3 * 6 = 18 apples for 5 friends" is 18);
3. the last few words given explicitly ("the answer is blue").

So a number in passing never beats an explicit answer, and a revision beats what it revises.
Questions give no answers ("So the answer is 5?"), nor do denials ("the answer is not 5").
Promises: pure; any text is survived. Knows nothing of what the right answer is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from interaction.spoken import without_thinking
from reward.extraction.expression import expression_in, result_of, whole
from reward.extraction.turns import without_questions

_ASIDE = (
    r"(?:[^\w\n.?!:=]{0,4}\b(?:to|for|in|of|here|now|then|therefore|thus|again|rounded)\b"
    r"[^.?!\n:=]{0,50}?[^\w\n.?!:=]{0,6})"
)
_VERB = (
    r"\b(?:is|are|equals|becomes|remains|(?:will|would|should|must)\s{1,3}be|"
    r"comes?(?:\s{1,3}out)?\s{1,3}to)\b(?:\s{1,3}(?:still|now|then|therefore|thus|indeed|just)\b)?"
)
_GAP = r"[^\w\n.?!:=]{0,6}"
# "the answer, in dollars, is", "answer (in dollars):", but not "to give the answer in dollars:".
_STATED = re.compile(
    r"(?:\b(?:the|my|our|final|correct|right)\s{1,3}(?:(?:final|correct|right|exact)\s{1,3}){0,2}"
    r"answer|^[^\w\n]{0,20}(?:(?:final|correct)\s{1,3})?(?:answer|result))s?"
    rf"(?:(?P<aside>{_ASIDE}){_VERB}|{_GAP}(?:{_VERB}|(?:\([^()\n]{{0,40}}\){_GAP})?(?:[:=]|\n)))"
    r"\s{0,3}:?"
    r"|^[ \t]*\#{4}[ \t]+(?=[-\u2212$]{0,2}\d[\d,.]*[ \t]*$)",
    re.I | re.M,
)
_BOX = re.compile(r"\\f?boxed\s{0,3}(?:\{|(?=[\d-]))")
_END = re.compile(r"[.!?](?=[\s*\"')]|$)|\n|;\s")
_DENIED = re.compile(r"(?:not|un\w+|wrong|incorrect|missing|different|never)\b", re.I)
_DENIAL = re.compile(r"answer\s{1,3}(?:is|was)(?:n['\u2019]t|\s{1,3}not)\b[^.\n]{0,80}", re.I)
_NOT_BUT = re.compile(r"not\b[^.]{0,60}?\bbut\b(?:\s{1,3}rather\b)?", re.I)
_REACH = 400
_MOST_WORDS = 5


def final_answer(texts: Sequence[str]) -> str | None:
    r"""Return the answer of the policy's turns, or None if there is none.

    Args:
        texts: The policy's turns in order.

    Returns:
        A number without currency and thousands separators ("1234.5"), LaTeX or a formula without
        its delimiters ("\frac{1}{2}"), a choice ("(B)") or at most five words.
    """
    turns = [without_thinking(text) for text in reversed(texts)]
    for find in (_explicit, _bare, _in_words):
        for turn in turns:
            answer = find(turn)
            if answer is not None:
                return answer
    return None


def _explicit(text: str) -> str | None:
    """Return the last boxed or stated answer with something mathematical in it."""
    marks = [*_STATED.finditer(text), *_BOX.finditer(text)]
    for mark in sorted(marks, key=re.Match.end, reverse=True):
        content = _boxed(text, mark) if mark.re is _BOX else _statement(text, mark)
        answer = expression_in(content) or (content if mark.re is _BOX else None)
        if answer:
            return answer
    return None


def _bare(text: str) -> str | None:
    """Return the last number or formula outside of questions and denials."""
    told = _DENIAL.sub("", _BOX.sub(" ", without_questions(text)))
    return whole(told) or result_of(told)


def _in_words(text: str) -> str | None:
    """Return the last statement that is a few words."""
    for mark in reversed(list(_STATED.finditer(text))):
        words = _statement(text, mark).strip(" .,:\"'`")
        if words and not mark["aside"] and len(words.split()) <= _MOST_WORDS:
            return words
    return None


def last_box(text: str) -> str | None:
    r"""Return what the last `\boxed{...}` of a text holds, or None if there is none."""
    held = [_boxed(text, box) for box in _BOX.finditer(text)]
    return next((content for content in reversed(held) if content), None)


def _boxed(text: str, box: re.Match[str]) -> str:
    """Return what a box holds, whatever braces are in it; "" if it has no end."""
    rest = text[box.end() : box.end() + _REACH]
    if not box[0].endswith("{"):
        return re.split(r"[\s$,]", rest)[0].rstrip(".")
    depth = 1
    for brace in re.finditer(r"(?<!\\)[{}]", rest):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return rest[: brace.start()].strip()
    return ""


def _statement(text: str, mark: re.Match[str]) -> str:
    """Return what is stated after a marker up to the sentence's end; "" if nothing is."""
    said = text[mark.end() : mark.end() + _REACH].lstrip(" \t\r\n:")
    said = _NOT_BUT.sub("", said.replace("**", "").replace("`", ""), count=1).lstrip(" *_")
    if said.startswith(("\\[", "$$")):
        said = " ".join(said.split())
    end = _END.search(said)
    if (end and end[0] == "?") or _DENIED.match(said) or _BOX.search(said):
        return ""
    return said[: end.start()] if end else said
