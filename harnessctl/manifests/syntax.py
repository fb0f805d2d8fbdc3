"""What a YAML parser's complaint means to the author: the place, the cause in plain words, and the fix."""

from __future__ import annotations

import re
from typing import Any

from yaml import YAMLError

from harnessctl.errors import Fault
from harnessctl.manifests.encoding import line_and_column

_ENTRY = re.compile(r"^(\s*(?:- +)*)([^\s:#\[\]{}\"'][^:]*?): +(.*\S)\s*$")
_PREFIX = "tag:"


def syntax_fault(path: str, text: str, error: YAMLError, shift: int) -> Fault:
    """The fault for `error`, which the parser raised on `text`; `shift` lines stand before the text in the file."""
    problem = str(getattr(error, "problem", "") or "")
    context = str(getattr(error, "context", "") or "")
    mark: Any = getattr(error, "problem_mark", None)
    start: Any = getattr(error, "context_mark", None)
    if mark is None:
        position = getattr(error, "position", 0)
        line, col = line_and_column(text, int(position or 0))
        return Fault(
            path, line + shift, col, "yaml-syntax", "the text cannot be read as YAML", str(error).split("\n")[0]
        )
    lines = [*text.split("\n"), ""]  # a mark may stand one line past the end
    row, column = mark.line, mark.column
    shown = lines[row].strip()
    char = lines[row][column : column + 1]

    def fault(code: str, message: str, got: str = "", allowed: str = "", hint: str = "", at: Any = mark) -> Fault:
        return Fault(path, at.line + 1 + shift, at.column + 1, code, message, got, allowed, hint)

    if "maximum nesting depth" in problem:
        return fault("yaml-depth", "values are nested too deeply", allowed="64 levels")
    if "but found another document" in problem:
        return fault("yaml-documents", "the file holds more than one document", "---", "one document a file")
    if "undefined alias" in problem:
        return fault("yaml-alias", "an alias to an anchor that is not defined", shown[:60])
    if "duplicate anchor" in problem:
        return fault("yaml-alias", "an anchor is defined twice", shown[:60])
    if "tag" in problem or _PREFIX in problem:
        return fault("yaml-tag", "an unknown tag", shown[:60], hint="remove the tag; put text in quotes")
    if "mapping values are not allowed" in problem:
        return fault("yaml-colon", *_colon(lines, row))
    if "quoted scalar" in context and "unexpected end of stream" in problem:
        return fault(
            "yaml-quote",
            "a quote is opened and never closed",
            lines[start.line].strip()[:60],
            at=start,
            hint="close it; a quote inside a quoted text is doubled ('') or escaped (\\\")",
        )
    if char == "\t" or (lines[row][:column].strip() == "" and "\t" in lines[row][: column + 1]):
        return fault("yaml-tab", "a tab is used for indentation", "a tab", "spaces", "replace the tab by spaces")
    if "cannot start any token" in problem:
        return fault("yaml-syntax", f"a value may not begin with `{char}`", shown[:60], hint=_quote(lines, row))
    if "escape" in problem or "hexdecimal" in problem:
        return fault(
            "yaml-escape",
            "an unknown escape in a double-quoted text",
            shown[:60],
            hint="write a backslash twice, or use single quotes",
        )
    if "flow" in context and start is not None:
        bracket = "[ ]" if "sequence" in context else "{ }"
        return fault(
            "yaml-bracket",
            f"a bracket is opened and never closed, or a comma is missing: {bracket}",
            lines[start.line].strip()[:60],
            at=start,
        )
    if "could not find expected ':'" in problem and start is not None:
        return fault(
            "yaml-syntax",
            "a line without a colon stands where `key: value` is expected",
            lines[start.line].strip()[:60],
            at=start,
            hint="indent it if it belongs to the value above, or write `key: value`",
        )
    if "did not find expected key" in problem:
        return fault(
            "yaml-syntax",
            "the line does not fit the lines above it",
            shown[:60],
            hint="check its indentation, and that nothing follows a closing quote or bracket",
        )
    return fault(
        "yaml-syntax",
        "the text cannot be read as YAML",
        shown[:60] or "the end of the file",
        hint=f"{context}, {problem}" if context else problem,
    )


def _colon(lines: list[str], row: int) -> tuple[str, str, str, str]:
    """Message, got, allowed and hint for a colon that YAML reads as a second key on one line."""
    line = lines[row]
    match = _ENTRY.match(line)
    if match and ": " in match[3] + " ":
        return "an unquoted value contains a colon", match[3][:60], "a quoted text", _quote(lines, row)
    hint = (
        "check the indentation of this line; if it continues the text above, begin that text with `>-` beside its key"
    )
    return "a key stands where no key may stand", line.strip()[:60], "", hint


def _quote(lines: list[str], row: int) -> str:
    """The hint that shows the line with its value in quotes."""
    match = _ENTRY.match(lines[row]) if row < len(lines) else None
    if not match:
        return "put the value in quotes"
    value = match[3]
    if len(value) > 60:
        value = value[:57] + "..."
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"put the value in quotes: {match[2]}: {quoted}"
