"""Report: what an import made of each source, and what it did not carry over and why.

What always holds: every file that was looked at is in the report once, as imported, unchanged, refused or passed over;
whatever was changed, guessed or left behind is a note with its place.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal["imported", "unchanged", "refused", "passed over"]
NoteKind = Literal["changed", "warning", "not carried over"]

_MAX_PASSED_OVER = 5


class Note(msgspec.Struct, frozen=True):
    """One thing to know of one source. `line` is 1-based in the source, 0 where the whole file is meant."""

    kind: NoteKind
    path: str
    line: int
    message: str

    def render(self) -> str:
        """`path:line: kind: message`."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.kind}: {self.message}"


class Entry(msgspec.Struct, kw_only=True):
    """What became of one source file.

    `files` are the project paths written (or that would be, in a dry run). `reason` says why it was refused or passed
    over; passed over are files that are of another kind altogether.
    """

    source: str
    outcome: Outcome
    name: str = ""
    files: list[str] = []
    reason: str = ""
    notes: list[Note] = []

    def note(self, kind: NoteKind, line: int, message: str) -> None:
        """Keep a note on this source."""
        self.notes.append(Note(kind, self.source, line, message))

    def refuse(self, reason: str) -> None:
        """Turn the entry into a refusal; nothing of it is written."""
        self.outcome, self.reason = "refused", reason
        self.files.clear()


class ImportReport(msgspec.Struct, kw_only=True):
    """The result of an import: one entry a source file, in order of path."""

    kind: Literal["skills", "hooks", "mcp"]
    source: str
    dry_run: bool = False
    entries: list[Entry] = []

    @property
    def imported(self) -> list[Entry]:
        """Sources that are in the project now: written, or there already with the same content."""
        return [e for e in self.entries if e.outcome in ("imported", "unchanged")]

    @property
    def refused(self) -> list[Entry]:
        """Sources of the right kind that were not imported."""
        return [e for e in self.entries if e.outcome == "refused"]

    @property
    def passed_over(self) -> list[Entry]:
        """Files in the source folder that are of another kind."""
        return [e for e in self.entries if e.outcome == "passed over"]

    def render(self) -> str:
        """The report as plain text."""
        out: list[str] = []
        for entry in self.imported:
            head = "would import" if self.dry_run and entry.outcome == "imported" else entry.outcome
            out.append(f"{head} {entry.source}" + (f" as {', '.join(entry.files)}" if entry.files else ""))
            out += [f"    {note.render()}" for note in entry.notes]
        for entry in self.refused:
            out.append(f"refused {entry.source}: {entry.reason}")
            out += [f"    {note.render()}" for note in entry.notes]
        over = self.passed_over
        out += [f"passed over {entry.source}: {entry.reason}" for entry in over[:_MAX_PASSED_OVER]]
        if len(over) > _MAX_PASSED_OVER:
            out.append(f"passed over {len(over) - _MAX_PASSED_OVER} more files that are no {self.kind}")
        verb = "would be imported" if self.dry_run else "imported"
        out.append(f"{len(self.imported)} {verb}, {len(self.refused)} refused, {len(over)} passed over")
        return "\n".join(out)
