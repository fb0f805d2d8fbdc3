"""Bytes to text: what may stand in a manifest or skill file before anybody parses it.

What always holds: the text returned is Unicode with LF line ends and no byte-order mark, so that lines and columns
count the same in every reader. Whatever had to be changed for that is a fault.
"""

from __future__ import annotations

import re

from harnessctl.errors import Fault, Faults

MAX_SOURCE_BYTES = 4_000_000
_MAX_REPORTED = 20

# C0 without tab and newline, DEL, C1, and what YAML 1.1 took for line breaks.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_BIDI = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


def decode(path: str, data: bytes, faults: Faults) -> str | None:
    """The text of a source file, or None when it cannot be read as text at all.

    Adds a fault for a byte-order mark, CRLF line ends, control characters, invalid UTF-8 and a file over 4 MB, and
    a warning for characters that turn the direction of writing (they can hide text from a reviewer).
    """
    if len(data) > MAX_SOURCE_BYTES:
        faults.add(
            Fault(path, 0, 0, "text-too-large", "the file is too large", f"{len(data)} bytes", f"{MAX_SOURCE_BYTES}")
        )
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        col = error.start - data.rfind(b"\n", 0, error.start)
        faults.add(
            Fault(
                path,
                line,
                col,
                "text-encoding",
                "the file is not UTF-8 text",
                f"byte 0x{data[error.start]:02x}",
                "UTF-8",
                "save the file as UTF-8",
            )
        )
        return None
    if text.startswith("\ufeff"):
        text = text[1:]
        faults.add(
            Fault(
                path,
                1,
                1,
                "text-bom",
                "the file begins with a byte-order mark",
                "U+FEFF",
                "plain UTF-8",
                "save the file as UTF-8 without BOM",
            )
        )
    if "\r" in text:
        line = text.count("\n", 0, text.index("\r")) + 1
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        faults.add(
            Fault(
                path,
                line,
                0,
                "text-crlf",
                "the file has Windows line ends",
                "CR LF" if b"\r\n" in data else "CR",
                "LF",
                "save it with LF line ends; `* text=auto eol=lf` in .gitattributes keeps them",
            )
        )
    _report(path, text, faults)
    return _CONTROL.sub("\ufffd", text)


def _report(path: str, text: str, faults: Faults) -> None:
    for match in list(_CONTROL.finditer(text))[:_MAX_REPORTED]:
        line, col = line_and_column(text, match.start())
        faults.add(
            Fault(
                path,
                line,
                col,
                "text-control",
                "a control character",
                f"U+{ord(match[0]):04X}",
                "printable characters, tab and newline",
                "delete it; in a double-quoted YAML string it can be written as an escape",
            )
        )
    for match in list(_BIDI.finditer(text))[:_MAX_REPORTED]:
        line, col = line_and_column(text, match.start())
        faults.add(
            Fault(
                path,
                line,
                col,
                "text-bidi",
                "a character that turns the direction of writing can hide text from a reader",
                f"U+{ord(match[0]):04X}",
                severity="warning",
            )
        )


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """The 1-based line and column (in code points) of `index` in `text`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
