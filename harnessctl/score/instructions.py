"""Instructions: whether a reply keeps to what a prompt asks of its form and words; each by an exact rule.

What always holds: width, case and runs of spaces make no difference to words and signs (`！` is `!`), but for Lowercase and
for lengths, which count characters as they are.
"""

from __future__ import annotations

import re
import unicodedata

from harnessctl.records.task import (
    Avoids,
    Begins,
    Ends,
    Instruction,
    Length,
    Lines,
    Lowercase,
    Marks,
    Mentions,
    Sentences,
    Wrapped,
)

_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "。": "."})
#: An end of a sentence: not the point of a number, of `No. 3` or of an address.
_END = re.compile(r"(?:(?<!\bno)(?<!\bNo)(?<!\bNO)\.|[!?。！？…])+(?=$|[\s\"'”’」』)）】]|(?<=[。！？…]))")


def fault(text: str, asked: Instruction) -> str:
    """What of `asked` the reply `text` does not keep to, or nothing."""
    reply = text.strip()
    match asked:
        case Begins():
            return "" if _same(reply).startswith(_same(asked.text)) else f"does not begin with: {asked.text}"
        case Ends():
            return "" if _same(reply).endswith(_same(asked.text)) else f"does not end with: {asked.text}"
        case Mentions():
            return "" if has(reply, asked.text) else f"does not say: {asked.text}"
        case Avoids():
            said = [word for word in asked.texts if has(reply, word)]
            return f"says: {', '.join(said)}" if said else ""
        case Length():
            return _length(len(reply), asked)
        case Sentences():
            found = len(sentences(reply))
            return "" if found == asked.count else f"{found} sentences, not {asked.count}"
        case Lines():
            found = len([line for line in reply.splitlines() if line.strip()])
            is_dense = len(reply.splitlines()) == found
            return "" if found == asked.count and is_dense else f"{found} lines, not {asked.count}"
        case Marks():
            found = _same(reply).count(_same(asked.mark))
            return "" if found == asked.count else f"{found} times `{asked.mark}`, not {asked.count}"
        case Wrapped():
            return "" if _is_wrapped(_same(reply), _same(asked.left), _same(asked.right)) else (
                f"does not stand between {asked.left} and {asked.right}"
            )  # fmt: skip
        case Lowercase():
            return "" if reply == reply.lower() else "has capital letters"


def has(text: str, phrase: str) -> bool:
    """Whether `text` has `phrase` in it, Latin words whole."""
    text, phrase = _same(text), _same(phrase)
    before = r"(?<![a-z0-9])" if phrase[:1].isascii() and phrase[:1].isalnum() else ""
    after = r"(?![a-z0-9])" if phrase[-1:].isascii() and phrase[-1:].isalnum() else ""
    return bool(phrase) and re.search(f"{before}{re.escape(phrase)}{after}", text) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a text; what follows the last sign is one too."""
    parts = (part.strip(" \t\r\n\"'“”‘’「」『』()（）【】") for part in _END.split(text))
    return [part for part in parts if part]


def _same(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.strip()).translate(_QUOTES)
    return _SPACE.sub(" ", plain).casefold()


def _length(found: int, asked: Length) -> str:
    if found < asked.least:
        return f"{found} characters, fewer than {asked.least}"
    if asked.most is not None and found > asked.most:
        return f"{found} characters, more than {asked.most}"
    return ""


def _is_wrapped(text: str, left: str, right: str) -> bool:
    if len(text) < len(left) + len(right) or not (text.startswith(left) and text.endswith(right)):
        return False
    inner = text[len(left) : len(text) - len(right)]
    return bool(inner.strip()) and left not in inner and right not in inner
