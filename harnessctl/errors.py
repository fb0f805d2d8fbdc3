"""Every error that harnessctl raises on purpose, and the fault that a manifest reader reports.

    HarnessctlError          anything below; carries `hint` and the exit code of the command
    |- FaultsError           one or more faults in manifests, bundles or inputs, each with its place
    |- UsageError            the command line or a key is wrong (exit 2)
    |- StorageError          a file could not be read or written (full disk, permission)
    |- BundleError           a bundle is not one, is of another version, or does not match its digest
    |- RecordError           an on-disk record (comment input, trajectory) cannot be read: path, line and cause
    |- ModelError            the model's endpoint failed; `retryable` says whether another try may help
    |- ToolError             a tool could not be run or gave no usable result
    |- HookError             a hook could not be run; never a decision
    |- OperatorError         an augmentation operator failed, or wrote a change that cannot be made
    |- LawBroken             a variant breaks a law of augmentation and is refused
    |- TrainingError         a training cannot go on: a loss that is no number, an empty set, data of another bundle
    `- CheckpointError       a checkpoint is not one, is incomplete, or is not what its lineage says

Layer 0: imports nothing of harnessctl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning"]

#: Controls, line breaks of any kind, and what turns the direction of writing.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(slots=True, frozen=True, order=True)
class Fault:
    """One thing wrong with one place of one file.

    `line` and `col` are 1-based; 0 means that the place inside the file is not known.
    `code` is stable and documented in docs/faults.md.
    """

    path: str
    line: int
    col: int
    code: str
    message: str
    got: str = ""
    allowed: str = ""
    hint: str = ""
    severity: Severity = "error"

    def render(self) -> str:
        """The fault as text: `path:line:col: error[CODE]: what; got ...; allowed ...` and a `hint:` line."""
        place = ":".join([self.path, *(str(n) for n in (self.line, self.col) if n)])
        text = f"{place}: {self.severity}[{self.code}]: {self.message}"
        if self.got:
            text += f"; got {self.got}"
        if self.allowed:
            text += f"; allowed {self.allowed}"
        text = _escaped(text)
        if self.hint:
            text += f"\n    hint: {_escaped(self.hint)}"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The fault as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def _escaped(text: str) -> str:
    """`text` on one line and without power over a terminal: what a file holds may be there to deceive its reader."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


@dataclass
class Faults:
    """A collector that lets a pass report everything that is wrong before anybody stops."""

    items: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """Keep one fault."""
        self.items.append(fault)

    def extend(self, faults: Iterable[Fault]) -> None:
        """Keep several faults."""
        self.items.extend(faults)

    @property
    def errors(self) -> list[Fault]:
        """The faults that stop a compile, in order of place."""
        return sorted(f for f in self.items if f.severity == "error")

    @property
    def warnings(self) -> list[Fault]:
        """The faults that do not stop a compile, in order of place."""
        return sorted(f for f in self.items if f.severity == "warning")

    def raise_if_errors(self) -> None:
        """Raise FaultsError with every fault (warnings too) when at least one is an error."""
        if self.errors:
            raise FaultsError(sorted(self.items))


class HarnessctlError(Exception):
    """Base of all errors shown to a person: a sentence, an optional hint, an exit code; never a traceback."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def render(self) -> str:
        """The error as the text that a terminal shows."""
        return f"error: {self.message}" + (f"\n    hint: {self.hint}" if self.hint else "")


class FaultsError(HarnessctlError):
    """Faults found in files; `faults` holds every one, sorted by place."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        errors = sum(f.severity == "error" for f in self.faults)
        super().__init__(f"{errors} error{'s' if errors != 1 else ''} found")

    def render(self) -> str:
        return "\n".join(f.render() for f in self.faults) + f"\n{self.message}"


class UsageError(HarnessctlError):
    """The command line, a key or a value given to a command is wrong."""

    exit_code = 2


class StorageError(HarnessctlError):
    """A file could not be read or written; nothing half-written is left behind."""


class BundleError(HarnessctlError):
    """A file is not a bundle, is of an unknown version, or its digest does not match its content."""


class RecordError(HarnessctlError):
    """An on-disk record cannot be read; the message names path, line and cause."""


class ModelError(HarnessctlError):
    """The model gave no usable answer. `retryable` is true for what another try may mend (429, 5xx, cut stream).

    `retry_after` is the wait in seconds that the endpoint asked for, if it did.
    """

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.retry_after = retry_after


class ToolError(HarnessctlError):
    """A tool could not be run or gave no usable result; becomes a tool result with status `error`."""


class HookError(HarnessctlError):
    """A hook could not be run (missing script, crash, time-out): named in the record, never read as a decision."""


class OperatorError(HarnessctlError):
    """An augmentation operator failed, or wrote a change of something that is not there; the message names it."""


class LawBroken(HarnessctlError):
    """A variant breaks a law of augmentation: `law` is its letter, `place` where, `operator` who broke it if known."""

    def __init__(self, law: str, place: str, reason: str, *, operator: str | None = None, hint: str = "") -> None:
        self.law = law
        self.place = place
        self.reason = reason
        self.operator = operator
        by = f" after {operator}" if operator else ""
        super().__init__(f"law {law} is broken{by}: {place}: {reason}", hint=hint)


class TrainingError(HarnessctlError):
    """A training cannot begin or go on; the last good state is on disk."""


class CheckpointError(HarnessctlError):
    """A checkpoint cannot be read or used: not one, incomplete, or not what its lineage says."""
