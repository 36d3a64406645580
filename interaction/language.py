"""Which language is a text in, told only when it is clear?

Promises: pure, no model: the share of letters per script, then counts of words that only one of
English, German, Spanish and French uses. A short or mixed text is in no other language.
Knows nothing of conversations.
"""

from __future__ import annotations

import re
import unicodedata

NAMES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French"}
_SCRIPTS = {
    "ar": ("ARABIC",),
    "el": ("GREEK",),
    "fa": ("ARABIC",),
    "he": ("HEBREW",),
    "hi": ("DEVANAGARI",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "ko": ("HANGUL",),
    "ru": ("CYRILLIC",),
    "uk": ("CYRILLIC",),
    "zh": ("CJK",),
}
_ONLY = {
    "en": """the and of is are was i i'm my you your it that with for have would want need what
        this they we not like to""",
    "de": """der das und ist ich nicht ein eine einen mit für auf wir sie mein meine möchte auch
        dem den zu von habe bin wie aber oder""",
    "es": """el los las y es yo una con para por mi muy quiero necesito tengo pero como más qué
        está soy del unos cuando""",
    "fr": """le les et est je une avec pour mon ma mes suis pas dans ce cette j'ai nous vous mais
        du au voudrais sont""",
}
_STOP_WORDS = {language: frozenset(text.split()) for language, text in _ONLY.items()}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_FEWEST_LETTERS = 6
_CLEAR_COUNT = 4
_CLEAR_RATIO = 3


def other_language(text: str, language: str) -> str | None:
    """Return the name of the language `text` is in, if that clearly is not `language`.

    Args:
        language: ISO 639-1 code of what it should be in.
    """
    if _other_script(text, language):
        return "another script"
    if language not in _STOP_WORDS:
        return None
    said = _WORD.findall(text.replace("\u2019", "'"))
    own = sum(word.lower() in _STOP_WORDS[language] for word in said)
    # Capitals may be a name's: "Las Vegas, Los Angeles".
    counts = {
        code: sum(word in stops for word in said)
        for code, stops in _STOP_WORDS.items()
        if code != language
    }
    most = max(counts, key=lambda code: counts[code])
    if counts[most] >= _CLEAR_COUNT and counts[most] >= _CLEAR_RATIO * own:
        return NAMES[most]
    return None


def _other_script(text: str, language: str) -> bool:
    """Return whether most letters are of a script that the language is not written in."""
    scripts = [unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha()]
    scripts = [script.split("-")[0] for script in scripts]
    if len(scripts) < _FEWEST_LETTERS:
        return False
    own = _SCRIPTS.get(language, ("LATIN",))
    if language not in _SCRIPTS and language not in NAMES:
        return False  # a language whose script is not known here
    # Names and brands in Latin letters are common in every script.
    needed = 0.5 if own == ("LATIN",) else 0.2
    return sum(script in own for script in scripts) < needed * len(scripts)
