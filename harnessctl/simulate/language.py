"""Language: told from the script of a text, where a log does not say it."""

from __future__ import annotations

import re

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)


def language_of(text: str) -> str:
    """`zh` where a Chinese character occurs and no kana; likewise for other scripts; `en` for all that is left.

    Languages that share the Latin script are not told apart.
    """
    return next((language for language, script in _SCRIPTS if script.search(text)), "en")
