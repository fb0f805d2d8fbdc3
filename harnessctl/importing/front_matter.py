"""Front matter of a foreign SKILL.md, read as leniently as the specification's clients do.

What always holds: a value that YAML can read is what YAML says; only an entry that YAML cannot read is repaired, and
each repair is a note with its line. Two values for one key, and front matter that is never closed, are refused: nobody
can tell what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from harnessctl.errors import Fault, Faults
from harnessctl.importing.report import Entry
from harnessctl.manifests.load import load_text

_ENTRY = re.compile(r"^(\"[^\"]+\"|'[^']+'|[^\s#:\"'\[\]{}-][^:]*?)[ \t]*:(?:[ \t]+(.*)|$)")
_NESTED_LINE = re.compile(r"^(\s*(?:- +)?)([\w.-]+):[ \t]+(\S.*)$")
_STRUCTURE = ("|", ">", "[", "{", "&", "*", "!")


@dataclass(slots=True)
class FrontMatter:
    """The fields of a front matter with their lines, and the body with the line that it begins at.

    `fields` is None where the file has no front matter at all.
    """

    fields: dict[str, Any] | None
    lines: dict[str, int]
    body: str
    body_line: int


@dataclass(slots=True)
class _Entry:
    key: str
    line: int
    lines: list[str] = field(default_factory=list)


def read_front_matter(text: str, entry: Entry) -> FrontMatter | None:
    """The front matter and body of a skill's text, or None with the entry refused."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != "---":
        return FrontMatter(None, {}, text, 1)
    if first:
        entry.note("changed", 1, f"{first} empty lines before the front matter were taken out")
    end = next((n for n in range(first + 1, len(lines)) if lines[n].rstrip() == "---"), None)
    if end is None:
        entry.refuse(f"the front matter that opens at line {first + 1} is never closed by a second line ---")
        return None
    fields = _fields(lines[first + 1 : end], first + 2, entry)
    if fields is None:
        return None
    places = {item.key: item.line for item in _entries(lines[first + 1 : end], first + 2)}
    return FrontMatter(fields, places, "\n".join(lines[end + 1 :]), end + 2)


def _fields(lines: list[str], first_line: int, entry: Entry) -> dict[str, Any] | None:
    """The fields of the front matter's lines, repaired where YAML cannot read them; None with the entry refused."""
    faults = Faults()
    document = load_text(entry.source, "\n".join(lines), faults, first_line=first_line)
    if document is not None and not faults.errors:
        if document.value is None:
            return {}
        if isinstance(document.value, dict):
            return document.value
        entry.refuse(f"the front matter is {_kind(document.value)}, not fields")
        return None
    entries = _entries(lines, first_line)
    if not entries:
        entry.refuse(f"the front matter cannot be read: {_cause(faults.errors[0])}")
        return None
    seen: dict[str, int] = {}
    out: dict[str, Any] = {}
    for item in entries:
        if item.key in seen:
            entry.refuse(f"the key `{item.key}` is given twice, at lines {seen[item.key]} and {item.line}")
            return None
        seen[item.key] = item.line
        value = _value(item, entry)
        if value is _UNREADABLE:
            return None
        out[item.key] = value
    return out


_UNREADABLE = object()


def _entries(lines: list[str], first_line: int) -> list[_Entry]:
    """The lines of each top-level key. Lines before the first key are dropped when they are empty or comments."""
    out: list[_Entry] = []
    for number, line in enumerate(lines, first_line):
        match = _ENTRY.match(line)
        if match:
            out.append(_Entry(match[1].strip("\"'"), number, [line]))
        elif out:
            out[-1].lines.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            return []
    return out


def _value(item: _Entry, entry: Entry) -> Any:
    """The value of one entry: as YAML reads it, or repaired; _UNREADABLE with the entry refused."""
    value, fault = _load(item, item.lines, entry)
    if fault is None:
        return value
    if any("\t" in line[: len(line) - len(line.lstrip())] for line in item.lines):
        spaced = [_untabbed(line) for line in item.lines]
        value, again = _load(item, spaced, entry)
        if again is None:
            entry.note("changed", fault.line, f"tabs that indent `{item.key}` were read as two spaces each")
            return value
    head = _ENTRY.match(item.lines[0])
    written = (head[2] or "").strip() if head else ""
    if written and not written.startswith(_STRUCTURE):
        entry.note("changed", fault.line, f"`{item.key}` was read as plain text: {_cause(fault)}")
        return _folded([written, *item.lines[1:]])
    quoted = [_quoted(line) for line in item.lines]
    value, again = _load(item, quoted, entry)
    if again is None:
        entry.note("changed", fault.line, f"a value under `{item.key}` was put in quotes: {_cause(fault)}")
        return value
    entry.refuse(f"line {fault.line} of the front matter cannot be read: {_cause(fault)}")
    return _UNREADABLE


def _load(item: _Entry, lines: list[str], entry: Entry) -> tuple[Any, Fault | None]:
    faults = Faults()
    document = load_text(entry.source, "\n".join(lines), faults, first_line=item.line)
    if document is None or faults.errors:
        return None, faults.errors[0]
    if not isinstance(document.value, dict) or list(document.value) != [item.key]:
        return None, Fault(entry.source, item.line, 1, "yaml-syntax", "it does not read as one field")
    return document.value[item.key], None


def _untabbed(line: str) -> str:
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].replace("\t", "  ") + rest


def _quoted(line: str) -> str:
    """The line with its value in double quotes, when it is `key: value` and the value is neither quoted nor structure."""
    match = _NESTED_LINE.match(line)
    if not match or match[3].startswith(('"', "'", *_STRUCTURE)):
        return line
    escaped = match[3].rstrip().replace("\\", "\\\\").replace('"', '\\"')
    return f'{match[1]}{match[2]}: "{escaped}"'


def _folded(lines: list[str]) -> str:
    """Lines as YAML folds a plain scalar: one newline is a space, a blank line a newline; outer quotes are taken off."""
    out = ""
    gap = 0
    for line in (line.strip() for line in lines):
        if not line:
            gap += 1
            continue
        out += ("\n" * gap if gap else " " if out else "") + line
        gap = 0
    if len(out) > 1 and out[0] in "\"'" and out.endswith(out[0]):
        out = out[1:-1]
    return out


def _cause(fault: Fault) -> str:
    return fault.message + (f" ({fault.got})" if fault.got else "")


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "plain text"
