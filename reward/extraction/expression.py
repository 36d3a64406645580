r"""What in a sentence is mathematics: formulas, numbers, choices, and where words begin.

Promises: a formula comes without its delimiters, a number without its dressing and unit, a
chain "3 * 6 = 18" as its last member. Pure. Knows nothing of turns or of right and wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reward.extraction.numbers import NUMBER, tidy

# A dollar sign is one of money where the text between two of them ends on a space or where a
# digit follows the second.
_FORMULA = re.compile(
    r"\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]|\$\$(.{1,300}?)\$\$|"
    r"(?<!\\)\$(?=[^\s$])([^$\n]{1,200}?)(?<![\s\\])\$(?![\d$])",
    re.S,
)
_FRACTION = re.compile(r"[-\u2212]?\\[dt]?frac\s?(?:\{[^{}]{1,60}\}|\d)\s?(?:\{[^{}]{1,60}\}|\d)")
_FORMULA_OR_NUMBER = re.compile(f"{_FORMULA.pattern}|{_FRACTION.pattern}|{NUMBER.pattern}", re.S)
_COMMAND = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mbox|operatorname|begin|end)\s?\{[^{}]*\}|\\[A-Za-z]+"
)
_WORD = re.compile(r"(?<![A-Za-z])(?!(?:sin|cos|tan|log|ln|exp|sqrt|pi|inf)\b)[A-Za-z]{2,}", re.I)
_CHOICE = re.compile(r"(?:\(\s?[A-HJ]\s?\)|[A-HJ]\)|[A-HJ](?=[.:,]|\s*$))")
_CHAIN = re.compile(r"(?<![<>!\\])=(?!=)")
_LONGEST = 200
_SEPARATORS = re.compile(r"(?<=\d)(?:\{,\}|\\,|\\!,?)(?=\d{3})")
_UNIT = re.compile(
    r"\s*\\(?:text|mathrm|mbox)\s?\{[^{}\d]*\}|"
    r"(?:\s+|\s*\\?[°%])[^\d=+*/^()\[\]{}\\<>|]*(?:\^\{?[23]\}?|[²³])?"
)


def expression_in(statement: str) -> str | None:
    """Return the answer of a sentence's rest after "the answer is", or None if it is words."""
    statement = _SEPARATORS.sub(",", statement).strip()
    choice = _CHOICE.match(statement)
    if choice:
        return choice[0]
    formula = _FORMULA.search(statement)
    number = NUMBER.search(statement)
    if formula and (number is None or formula.start() <= number.start()):
        return _tidied(_content(formula))
    leading = lead(statement)
    if leading is not None:
        return leading
    rest = _CHAIN.split(statement)[-1]
    return next(formulas(rest), None) or next(formulas(statement), None)


def whole(text: str) -> str | None:
    """Return a text that is mathematics from its beginning to its end, else None."""
    return None if _first_word(text) else lead(text)


def lead(text: str) -> str | None:
    """Return the mathematics a text begins with, up to its first word, or None."""
    text = text.strip()
    if _CHOICE.fullmatch(text.rstrip(".")):
        return text.rstrip(".")
    word = _first_word(text)
    start = text[: word.start()] if word else text
    # A word's own digits and hyphen are not mathematics ("5km", "7-day").
    start = re.sub(r"\S*$", "", start) if word and not start.endswith(" ") else start
    start = start.lstrip(" \t\n,;:*").rstrip(" \t\n.,;:*")
    has_content = re.search(r"\d|\\[A-Za-z]|^[a-z]$", start) and "\n" not in start
    return _tidied(start) if has_content and len(start) <= _LONGEST else None


def _first_word(text: str) -> re.Match[str] | None:
    return _WORD.search(_COMMAND.sub(lambda found: " " * len(found[0]), text))


def formulas(text: str) -> Iterator[str]:
    """Yield the formulas and numbers of a text in order, where they hold a digit or a command."""
    text = _SEPARATORS.sub(",", text)
    for found in _FORMULA_OR_NUMBER.finditer(text):
        content = _content(found)
        if re.search(r"\d|\\[A-Za-z]", content):
            yield _tidied(content)


def result_of(text: str) -> str | None:
    """Return the last number or formula of a text; in its sentence what follows the last "="."""
    for sentence in reversed(re.split(r"\n|(?<=[.!])\s", text)):
        found = list(formulas(sentence))
        if found:
            after = _CHAIN.split(sentence)[1:]
            return next(formulas(after[-1]), found[-1]) if after else found[-1]
    return None


def _content(found: re.Match[str]) -> str:
    return next((group for group in found.groups() if group is not None), found[0])


def _tidied(formula: str) -> str:
    formula = _SEPARATORS.sub(",", formula).lstrip(" \t\n,;:$").rstrip(" \t\n.,;:$")
    formula = _last_of_chain(formula)
    number = NUMBER.match(formula)
    if number and (not formula[number.end() :] or _UNIT.fullmatch(formula[number.end() :])):
        return tidy(number[0])
    return formula


def _last_of_chain(formula: str) -> str:
    """Return what a calculation comes to; "x = 5" is a statement about x and stays."""
    first, *rest = _CHAIN.split(formula)
    letters = re.search(r"[A-Za-z]", _COMMAND.sub("", first))
    return rest[-1].strip() if rest and (len(rest) > 1 or not letters) else formula
