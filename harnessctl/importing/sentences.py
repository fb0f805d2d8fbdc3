"""Sentences: where a long text may be cut, and what a body says of itself first."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])[\"')\]]*(?=\s)|(?<=[。！？；])|(?=\n)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_NO_PARAGRAPH = re.compile(r"^\s*([#>|]|[-*+]\s|\d+[.)]\s|<|={3,}|-{3,}|\*{3,}|!\[)")


def cut(text: str, limit: int) -> str:
    """`text`, or its longest beginning of whole sentences within `limit` characters; of whole words, failing that."""
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _END.finditer(text[: limit + 1]) if 0 < match.end() <= limit]
    if ends and ends[-1] > limit // 4:
        return text[: ends[-1]].rstrip()
    space = text.rfind(" ", 0, limit)
    return text[: space if space > limit // 4 else limit].rstrip()


def first_paragraph(body: str) -> tuple[str, int]:
    """The first paragraph of a Markdown text on one line, and its 1-based line; the first heading when there is none.

    Headings, lists, quotes, tables, HTML, rules, images and fenced code are no paragraphs. ("", 0) when the body has
    neither.
    """
    fence, heading = "", ("", 0)
    lines = body.split("\n")
    for index, line in enumerate(lines):
        match = _FENCE.match(line)
        if match and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else match[1]
            continue
        if fence or not line.strip():
            continue
        if not heading[0] and line.startswith("#"):
            heading = (line.lstrip("#").strip(), index + 1)
        if _NO_PARAGRAPH.match(line) or line.startswith("    "):
            continue
        words: list[str] = []
        for part in lines[index:]:
            if not part.strip() or (words and _NO_PARAGRAPH.match(part)):
                break
            words.append(part.strip())
        return " ".join(words), index + 1
    return heading
