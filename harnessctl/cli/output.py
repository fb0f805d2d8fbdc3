"""What commands print: data on stdout, talk on stderr, JSON when asked; meaning survives without colour."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from harnessctl.errors import Fault


def talk(text: str) -> None:
    """A line for the person, on stderr."""
    sys.stderr.write(text + "\n")


def data(text: str) -> None:
    """A line of output, on stdout."""
    sys.stdout.write(text + "\n")


def json_data(value: Any) -> None:
    """One JSON document on stdout, indented; in ASCII alone where the stream cannot take it as it is."""
    import msgspec

    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(msgspec.to_builtins(value), indent=2)
    sys.stdout.write(text + "\n")


def faults(items: Iterable[Fault], *, color: bool | None = None) -> None:
    """Faults on stderr, one after the other; `error` and `warning` are coloured on a terminal."""
    lit = sys.stderr.isatty() and "NO_COLOR" not in os.environ if color is None else color
    for fault in items:
        text = fault.render()
        if lit:
            word = fault.severity
            shade = "31;1" if word == "error" else "33;1"
            text = text.replace(f" {word}[", f" \x1b[{shade}m{word}\x1b[0m[", 1)
        talk(text)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """A table on stdout. Cells wrap to the terminal; without one, to 120 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    terminal = console()
    if sys.stdout.isatty():
        terminal.print(shown)
        return
    with terminal.capture() as captured:
        terminal.print(shown)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    data("\n".join(lines).strip("\n") + "\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console that prints plain text without a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 120, highlight=False, soft_wrap=False)


def clip(text: str, size: int) -> str:
    """`text` on one line, cut to `size` characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1] + "…"


def plural(count: int, noun: str) -> str:
    """`1 fault`, `2 faults`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
