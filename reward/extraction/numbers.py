"""Numbers as people write them: how they are found in a text, and what they are worth.

Promises: `1,234.50`, `70 000`, `-$5`, `3/4`, `1 1/2`, `2.5e3` and `50%` are one number each; values
are exact. Knows nothing of mathematics beyond that.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SPACE = r"[ \u00a0\u2009\u202f]"
_DIGITS = (
    rf"(?:\d{{1,3}}(?:(?:,\d{{3}})+|(?:{_SPACE}\d{{3}})+)(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
)
_SIGN = r"[-\u2212]?"
# A number does not begin within a word ("H2"), nor is it an ordinal ("2nd").
NUMBER = re.compile(
    rf"(?<![\w.]){_SIGN}\\?[$€£¥]?{_SIGN}"
    rf"(?:\d+[ ]\d+/\d+|{_DIGITS}(?:\s?/\s?\d+(?![\d.])|[eE][-+]?\d{{1,3}}(?!\w))?)"
    r"(?![\d]|(?:st|nd|rd|th)\b)(?:\s?\\?%)?"
)
_FRACTION = re.compile(r"[-\u2212]?\\[dt]?frac\{[-\u2212]?\d+\}\{\d+\}")
_DRESSING = re.compile(r"[\s,$€£¥%\\\u00a0\u2009\u202f]")
_LONGEST = 60


def tidy(number: str) -> str:
    """Return a number that `NUMBER` found without currency and thousands separators."""
    percent = "%" if number.endswith("%") else ""
    mixed = re.fullmatch(r"(.*\d)[ ](\d+/\d+)", number.rstrip("%\\ "))
    if mixed and not re.search(r"[ ]\d{3}/", number):
        return f"{_plain(mixed[1])} {mixed[2]}{percent}"
    return _plain(number) + percent


def value_of(text: str) -> Fraction | None:
    """Return what a text is worth that is one number and nothing else, else None.

    A percentage is worth its digits: whether 50% means 50 or 1/2 is for the caller.
    """
    text = text.strip()
    if len(text) <= _LONGEST and _FRACTION.fullmatch(text):
        text = re.sub(r"\\[dt]?frac|[{}]", "", text.replace("}{", "/"))
    if len(text) > _LONGEST or not NUMBER.fullmatch(text):
        return None
    whole, _, part = tidy(text).rstrip("%").rpartition(" ")
    try:
        fraction = Fraction(part)
    except (ValueError, ZeroDivisionError):  # "--5", "1/0"
        return None
    if not whole:
        return fraction
    return Fraction(whole) + (-fraction if whole.startswith("-") else fraction)


def _plain(number: str) -> str:
    return _DRESSING.sub("", number).replace("\u2212", "-")
