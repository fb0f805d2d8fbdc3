"""Atoms: a Text as one string in which each reference and each quoted string is a mark, and back.

What always holds: `Atoms.text(Atoms.string)` is the text again, with neighbouring strings joined; a mark may move and is
never split, so that a rewriter that works on the string cannot alter a reference or a quotation.
"""

from __future__ import annotations

import re

from harnessctl.augment.phrases import CLOSE, OPEN, harmless
from harnessctl.bundle.text import Ref, Text

_OPAQUE = re.compile(
    rf"{OPEN}[^{CLOSE}]*{CLOSE}"
    r"|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)|\"[^\"\n]*\"|“[^”\n]*”|‘[^’\n]*’|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》"
    r"|(?<![\w'])'[^'\n]+'(?![\w'])|https?://[^\s)>\]]+|[\w.+-]+@[\w-]+\.[\w.]+|\{\{.*?\}\}|\{%.*?%\}|</?[A-Za-z][^<>\n]*>"
    r"|[A-Za-z0-9]*_\w*|\b[A-Za-z]+\d\w*",
    re.DOTALL,
)
_MARK = re.compile(f"{OPEN}([rq])(\\d+){CLOSE}")


class Atoms:
    """A text taken apart: `string` holds a mark (`r` a reference, `q` what is quoted) for each member of its list."""

    def __init__(self, text: Text) -> None:
        self._refs: list[Ref] = []
        self._quoted: list[str] = []
        parts: list[str] = []
        for part in text:
            if isinstance(part, str):
                parts.append(harmless(part))
            else:
                parts.append(f"{OPEN}r{len(self._refs)}{CLOSE}")
                self._refs.append(part)
        self.string = _OPAQUE.sub(self._hide, "".join(parts))

    def _hide(self, found: re.Match[str]) -> str:
        if found[0][0] == OPEN and found[0].count(OPEN) == 1 and found[0][-1] == CLOSE:
            return found[0]
        self._quoted.append(found[0])
        return f"{OPEN}q{len(self._quoted) - 1}{CLOSE}"

    def text(self, string: str) -> Text:
        """`string` as a Text: marks put back, neighbouring strings joined, empty ones left out."""
        unhidden = _MARK.sub(lambda found: self._quoted[int(found[2])] if found[1] == "q" else found[0], string)
        out: Text = []
        end = 0
        for found in _MARK.finditer(unhidden):
            if found.start() > end:
                out.append(unhidden[end : found.start()])
            out.append(self._refs[int(found[2])])
            end = found.end()
        if end < len(unhidden):
            out.append(unhidden[end:])
        return out


def joined(text: Text) -> Text:
    """`text` with neighbouring strings joined and empty ones left out: as it comes back from JSON and is written again."""
    out: Text = []
    for part in text:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return out
