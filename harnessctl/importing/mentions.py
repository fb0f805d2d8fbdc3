"""Mentions: names of tools and skills that stand bare in a text, and putting them into code spans where that is safe.

A compiled text refers to a tool or skill by a code span that is exactly its name; a bare mention of a name with `_` or
`-` is an error there, because renaming would miss it. What always holds: a mended text differs from the source by code
span marks alone (and by the new names that were asked for); where marks would change what the text says (in code, a
path, an address, a link's target, a longer code span) nothing is touched and the mention is reported as stuck.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_FENCED = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n(?:.*?\n)? *\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*")
#: Regions of Markdown in which marks are no marks: link targets, tags, addresses, indented code. Bounded, so that no
#: text takes long.
_VERBATIM = re.compile(
    r"\]\([^)\n]{0,500}\)|\]\[[^\]\n]{0,200}\]|^ {0,3}\[[^\]\n]{1,200}\]:[^\n]*$|</?[A-Za-z][^>\n]{0,500}>"
    r"|(?:https?|file|ftp)://[^\s)>\]]+|(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+",
    re.MULTILINE,
)
_NAMESPACED = re.compile(r"^([A-Za-z0-9_-]+:|/)([A-Za-z0-9_.-]+)$")
_RULE_SPAN = re.compile(r"^#([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)$")
_EXPLICIT_SPAN = re.compile(r"^(tool|skill):(.+)$", re.DOTALL)
#: What would grow into a word with the part that is moved out of a code span.
_JOINS = re.compile(r"[\w.-]")
#: What may not touch a bare mention that is to be put into a code span.
_BEFORE = frozenset("/\\.@#$%&=~_-`[")
_AFTER = frozenset("/\\@#$=~_-`(")

Where = Literal["text", "code", "address", "span"]

_PLACES: dict[Where, str] = {
    "text": "joined to other characters",
    "code": "in a code block",
    "address": "in a link, tag or comment",
    "span": "in a longer code span",
}


class Stuck(NamedTuple):
    """A mention that cannot be put into a code span. `line` is 1-based in the text."""

    name: str
    line: int
    where: Where

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return _PLACES[self.where]


class Mended(NamedTuple):
    """The text with its mentions in code spans; `done` are (line, what was written) of each change."""

    text: str
    done: list[tuple[int, str]]
    stuck: list[Stuck]


def mend(
    text: str, names: Collection[str], *, renamed: Mapping[str, str] | None = None, rules: Collection[str] | None = None
) -> Mended:
    """`text` with every mention of one of `names` in a code span of its own.

    `renamed` maps names that have another one in the project now: mentions of them get the new name. `rules`, where it
    is given, are the ids that `` `#id` `` may name: another such span has its `#` moved out. So has one with `tool:` or
    `skill:` before an unknown name: the compiler would take it for a reference.
    """
    renamed = renamed or {}
    edits: list[tuple[int, int, str]] = []
    stuck: list[tuple[int, str, Where]] = []
    fences = [match.span() for match in _FENCED.finditer(text)]
    spans = _code_spans(text, fences)
    verbatim = [match.span() for match in _VERBATIM.finditer(text)]
    comments = _comments(text)
    known = {*names, *renamed}
    for start, end in spans:
        inner = text[start:end].strip("`").strip()
        replaced = _span(inner, known, renamed, rules)
        if replaced and (replaced[0] == "`" or not _JOINS.match(text[start - 1 : start])):
            edits.append((start, end, replaced))
    whole = [(start, end) for start, end in spans if text[start:end].strip("`").strip() in known]
    rewritten = [(start, end) for start, end, _ in edits]
    for match in _WORD.finditer(text):
        word = match[0]
        name = next((n for n in (word, *word.split(".")) if n in known and ("_" in n or "-" in n)), None)
        if name is None or _inside(match.start(), whole) or _inside(match.start(), rewritten):
            continue
        if _inside(match.start(), fences):
            where: Where = "code"
        elif _inside(match.start(), spans):
            where = "span"
        elif _inside(match.start(), verbatim) or _inside(match.start(), comments):
            where = "address"
        elif word == name and _loose(text, match.start(), match.end()):
            edits.append((match.start(), match.end(), f"`{renamed.get(name, name)}`"))
            continue
        else:
            where = "text"
        if name not in renamed:
            stuck.append((match.start(), name, where))
    mended = _apply(text, edits, stuck)
    if edits:
        # A stray backtick may pair with one of ours: then the text is left as it was.
        again = mend(mended.text, {*names, *renamed.values()}, rules=rules)
        if again.done or len(again.stuck) > len(mended.stuck):
            return Mended(
                text, [], [Stuck(name, line, "span") for name, line in _bare(text, edits, known)] + mended.stuck
            )
    return mended


def _bare(text: str, edits: list[tuple[int, int, str]], known: Collection[str]) -> list[tuple[str, int]]:
    found = [(text[start:end].strip("`").strip(), text.count("\n", 0, start) + 1) for start, end, _ in edits]
    return [(name, line) for name, line in found if name in known]


def _span(inner: str, known: Collection[str], renamed: Mapping[str, str], rules: Collection[str] | None) -> str | None:
    """What a code span becomes, or None when it stays."""
    if inner in renamed:
        return f"`{renamed[inner]}`"
    if (joined := _NAMESPACED.match(inner)) and joined[1] not in ("tool:", "skill:") and _marked(joined[2], known):
        return f"{joined[1]}`{renamed.get(joined[2], joined[2])}`"
    if rules is not None and (rule := _RULE_SPAN.match(inner)) and rule[1] not in rules:
        return f"#`{rule[1]}`"
    if (explicit := _EXPLICIT_SPAN.match(inner)) and explicit[2] not in known:
        return f"{explicit[1]}:`{explicit[2]}`" if "`" not in inner else None
    return None


def _marked(name: str, known: Collection[str]) -> bool:
    return name in known and ("_" in name or "-" in name)


def _code_spans(text: str, fences: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Code spans outside fences, found between them as the compiler does."""
    out: list[tuple[int, int]] = []
    at = 0
    for start, end in [*fences, (len(text), len(text))]:
        out += [span.span() for span in _SPAN.finditer(text, at, start)]
        at = end
    return out


def _comments(text: str) -> list[tuple[int, int]]:
    """HTML comments. Found by hand: a pattern would look for the end of each opening again."""
    out: list[tuple[int, int]] = []
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        if end < 0:
            break
        out.append((start, end + 3))
        start = text.find("<!--", end)
    return out


def _inside(index: int, regions: list[tuple[int, int]]) -> bool:
    at = bisect_right(regions, (index, len(regions) and 1 << 60)) - 1
    return at >= 0 and regions[at][0] <= index < regions[at][1]


def _loose(text: str, start: int, end: int) -> bool:
    """Whether nothing touches the word that would make it part of something longer; `/name` is a command, not a path."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "/":
        before = text[start - 2 : start - 1].strip("(\"'*")
        before = "/" if before.strip() else ""
    if (before and before in _BEFORE) or (after and after in _AFTER):
        return False
    return not (after in (".", ":") and text[end + 1 : end + 2].isalnum())


def _apply(text: str, edits: list[tuple[int, int, str]], stuck: list[tuple[int, str, Where]]) -> Mended:
    out: list[str] = []
    done: list[tuple[int, str]] = []
    at = 0
    for start, end, new in sorted(edits):
        out += [text[at:start], new]
        done.append((text.count("\n", 0, start) + 1, new))
        at = end
    out.append(text[at:])
    return Mended("".join(out), done, [Stuck(name, text.count("\n", 0, i) + 1, where) for i, name, where in stuck])
