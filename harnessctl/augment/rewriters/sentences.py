"""Sentences: a text's string cut into what is reworded and what stays as it is.

What always holds: the pieces joined are the string again; code fences, tables, indented code, HTML and front matter of
an imported text stay as they are, and so do the marks that begin a line, and sentences in other scripts than Latin and Chinese.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LEAD = re.compile(r"(\s*(?:#{1,6}\s+|[-*+]\s+|\d+[.)]\s+|>+\s?)*(?:\*\*[^*\n]+\*\*:?\s*)?)")
_CLOSERS = "\ue001\"'”’)」』"
_END = re.compile(
    rf"(?<![A-Z])(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)([.!?]+[{_CLOSERS}]*)(\s+)(?=[A-Z\ue000\"“(])|([。！？]+[”」』）]*)()"
)
_TAIL = re.compile(r"([.!?。！？…:：]*\s*)$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_WHOLE = re.compile(r"\s*(?:\||<|!\[|---|===|\{\{|\{%)|(?: {4}|\t)")
_WORDS = re.compile(r"[^\W\d_]{2,}|[\u3400-\u4dbf\u4e00-\u9fff]")
#: Letters of scripts of which nothing is known here: kana and Hangul, so that no Japanese is read as Chinese, and others.
_FOREIGN = re.compile(r"(?![A-Za-z\u00c0-\u024f\u0370-\u03ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])[^\W\d_]")


class Piece(NamedTuple):
    """`body` may be reworded where `open`; `tail` is its end mark and the space after it. `heading`: of a heading."""

    body: str
    tail: str = ""
    open: bool = False
    heading: bool = False


def pieces(string: str) -> list[Piece]:
    """`string` in pieces, in order."""
    out: list[Piece] = []
    fenced = False
    for number, line in enumerate(string.split("\n")):
        if number:
            out.append(Piece("\n"))
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip() and not _WHOLE.match(line):
            out += _line_pieces(line)
            continue
        out.append(Piece(line))
    return out


def _line_pieces(line: str) -> list[Piece]:
    found = _LEAD.match(line)
    lead = found[1] if found else ""
    out = [Piece(lead)] if lead else []
    heading = lead.lstrip().startswith("#")
    rest, start = line[len(lead) :], 0
    for end in _END.finditer(rest):
        mark = end.end(1) if end[1] is not None else end.end(3)
        out.append(_piece(rest[start : end.end()], mark - start, heading=heading))
        start = end.end()
    if start < len(rest):
        out.append(_piece(rest[start:], None, heading=heading))
    return out


def _piece(sentence: str, mark: int | None, *, heading: bool) -> Piece:
    tail = _TAIL.search(sentence)
    cut = tail.start() if tail else len(sentence)
    body = sentence[:cut]
    is_open = (
        _WORDS.search(body) is not None
        and _FOREIGN.search(body) is None
        and body.count("**") % 2 == 0
        and "](" not in body
    )
    return Piece(body, sentence[cut:], is_open, heading)
