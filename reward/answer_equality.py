r"""Are two answers the same? Rules for numbers, formulas, choices and words.

Promises: numbers are compared exactly and formulas by math-verify, so "1/2", "0.5" and
"\frac{1}{2}" are one, and 50% is 50 or 1/2; words are compared as words, because to math-verify
"even" and "veen" are the same product. What goes into its parser is bounded: a formula beyond
what answers need is equal to nothing but itself. Blocks; for threads. Knows nothing of
conversations.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from itertools import product

from reward.extraction.answer import last_box
from reward.extraction.expression import expression_in
from reward.extraction.numbers import value_of
from reward.formula_worker import FormulaWorker, TooSlow

_LONGEST = 200
_FEW_WORDS = 3
_COMMANDS = frozenset(
    r"""frac dfrac tfrac sqrt pi infty cup cap in notin cdot times div pm mp le leq ge geq lt gt ne
    neq left right text mathrm mbox textbf mathbf begin end circ degree emptyset varnothing setminus
    mathbb sin cos tan cot sec csc arcsin arccos arctan log ln exp alpha beta gamma theta lambda
    phi omega quad land lor mid dots ldots cdots overline boxed displaystyle""".split()
)
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}")
_CHOICE = re.compile(r"\(?\s*[A-HJ]\s*\)?")
_WORD = re.compile(r"[A-Za-z]{2,}")
_COUNTS = re.compile(r"[\d\\=^+*/<>]")
_LATEX = re.compile(r"\\[A-Za-z]+\s?(?:\{[A-Za-z *]*\})?")
_POWER = re.compile(r"\^|\*\*")
_GROUP_POWER = re.compile(r"[)\]}|]\s*(?:\^|\*\*)")
_SMALL_EXPONENT = re.compile(r"(?:\^|\*\*)\s*(?:[{(][^{}()^*]{0,12}[)}]|[-+]?\w|\\[a-z]+)")
_ROUNDING = Fraction(1, 10**6)  # math-verify's own: six decimal places
_WORKER = FormulaWorker()


class NoRule(ValueError):
    """A reference answer that no rule can compare with; the message says why."""


def check_reference(reference: str) -> None:
    """Look whether rules can compare answers with a reference.

    Raises:
        NoRule: If not: it is empty, prose, or cannot be parsed.
    """
    try:
        reason = _unusable(reference)
    except TooSlow as error:
        reason = str(error)
    if reason:
        raise NoRule(reason)


def same_answer(reference: str, answer: str) -> bool | None:
    """Compare an answer with a reference.

    Returns:
        None where no rule decides: one of them is words and the other is not the same words.

    Raises:
        NoRule: See `check_reference`.
        TooSlow: If comparing two formulas takes too long.
    """
    if _plain(reference) and _plain(reference) == _plain(answer):
        return True
    check_reference(reference)
    known, given = _bare(reference), _bare(answer)
    if _is_words(known):
        return _same_words(known, given)
    if not given or _is_words(given):
        return None
    ours, theirs = _readings(known), _readings(given)
    if ours and theirs:
        both_percent = len(ours) == len(theirs) == 2
        return _same_value(ours[:1], theirs[:1]) if both_percent else _same_value(ours, theirs)
    return is_bounded(given) and _WORKER.same(_unmixed(known), _unmixed(given))


def is_bounded(formula: str) -> bool:
    """Say whether math-verify can be given a formula: short, with known commands, no towers."""
    formula = re.sub(r"\^\s*\{?\\(?:circ|degree)\}?", "", formula)
    powers = len(_POWER.findall(formula))
    return (
        len(formula) <= _LONGEST
        and "!" not in formula.replace(r"\!", "")
        and set(re.findall(r"\\([A-Za-z]+)", formula)) <= _COMMANDS
        and not re.search(r"\d{30}", formula)
        and len(_GROUP_POWER.findall(formula)) <= 1
        and len(_SMALL_EXPONENT.findall(formula)) == powers
        and not re.search(r"(?:\^|\*\*)\D{0,3}\d{4}", formula)
    )


@lru_cache(maxsize=4096)
def _unusable(reference: str) -> str:
    """Return why no rule can compare with a reference, or ""."""
    known = _bare(reference)
    if not known:
        return "it is empty"
    words = _words(known) if _is_words(known) else _WORD.findall(_LATEX.sub(" ", reference))
    if len(words) > _FEW_WORDS:
        return f"it has more than {_FEW_WORDS} words"
    if _is_words(known) or value_of(known) is not None:
        return ""
    if not is_bounded(known):
        return "it is too long or too costly to be compared"
    return "" if _WORKER.can_parse(known) else "math-verify cannot parse it"


def _readings(answer: str) -> tuple[Fraction, ...]:
    """Return what a number can mean: nothing else if it is none, two things for a percentage."""
    value = value_of(answer)
    if value is None:
        return ()
    return (value, value / 100) if answer.rstrip().endswith("%") else (value,)


def _unmixed(formula: str) -> str:
    """Return a mixed number as a fraction: math-verify reads "1 1/2" as 1."""
    value = value_of(formula) if " " in formula else None
    return formula if value is None else str(value)


def _same_value(known: tuple[Fraction, ...], given: tuple[Fraction, ...]) -> bool:
    return any(_near(ours, theirs) for ours, theirs in product(known, given))


def _near(ours: Fraction, theirs: Fraction) -> bool:
    if ours.denominator == theirs.denominator == 1:
        return ours == theirs
    return abs(ours - theirs) < _ROUNDING / 2


def _same_words(known: str, given: str) -> bool | None:
    """Compare words; a sentence that holds the reference may say the same, or the opposite."""
    ours, theirs = _words(known), _words(given)
    if ours == theirs:
        return True
    return False if len(theirs) <= _FEW_WORDS and not set(ours) <= set(theirs) else None


def _bare(answer: str) -> str:
    """Return an answer without box, delimiters, unit and the words around a formula."""
    answer = (last_box(answer) or answer).strip()
    return expression_in(answer) or answer


def _is_words(answer: str) -> bool:
    """Say whether an answer is a choice, or words: letters, and nothing that counts."""
    text = _TEXT.sub(r" \1 ", answer).strip()
    if _CHOICE.fullmatch(text):
        return True
    return bool(_WORD.search(text)) and not _COUNTS.search(text)


def _words(answer: str) -> list[str]:
    return re.findall(r"\w+", _TEXT.sub(r" \1 ", answer).casefold())


def _plain(answer: str) -> str:
    return " ".join(answer.split()).lstrip("$ ").rstrip("$ .").casefold()
