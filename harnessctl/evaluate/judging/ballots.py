"""Ballots: votes with the judge's trajectories, kept by the content of what was asked, so that nothing is asked twice.

What always holds: a line is whole or is the torn last one, which is cut off; the newest line of a key counts; a ballot
without scores is kept for the record and asked again. The file is the journal of a pass that was killed, too.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harnessctl.errors import StorageError
from harnessctl.records.trajectory import Trajectory
from harnessctl.records.vote import Vote
from harnessctl.storage import JsonLinesWriter

#: Where ballots are kept, from the project's root.
FOLDER = "build/ballots"


class Ballot(msgspec.Struct, kw_only=True):
    """A vote, and the judge's trajectory of each attempt."""

    key: str
    is_scored: bool
    vote: Vote
    judgements: list[Trajectory]


class _Line(msgspec.Struct):
    key: str
    is_scored: bool


_lines = msgspec.json.Decoder(_Line)
_ballots = msgspec.json.Decoder(Ballot)
_encoder = msgspec.json.Encoder()


class Ballots:
    """One file of ballots: those of one voter. Close it with `close`. `corrupt` counts lines that are no ballots."""

    def __init__(self, path: Path) -> None:
        """StorageError when the file cannot be written or read."""
        self.path = path
        self.corrupt = 0
        self._places: dict[str, tuple[int, int, bool]] = {}
        self._end = 0
        self._writer = JsonLinesWriter(path)
        self._look()

    def scored(self, key: str) -> Ballot | None:
        """The ballot of a key; null when there is none, or none with scores."""
        found = self._places.get(key)
        return self.read(key) if found is not None and found[2] else None

    def read(self, key: str) -> Ballot | None:
        """The newest ballot of a key, with scores or not; null when there is none that can be read."""
        found = self._places.get(key)
        if found is None:
            return None
        try:
            with open(self.path, "rb") as file:
                file.seek(found[0])
                return _ballots.decode(file.read(found[1]))
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error
        except msgspec.DecodeError:
            self.corrupt += 1
            del self._places[key]
            return None

    def keep(self, ballot: Ballot) -> None:
        """Append a ballot. StorageError when the disk refuses."""
        self._writer.write(_encoder.encode(ballot))
        self._look()

    def _look(self) -> None:
        """Find the lines that were written since the last look, by this process or another."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    try:
                        head = _lines.decode(line)
                        self._places[head.key] = (self._end, len(line), head.is_scored)
                    except msgspec.DecodeError:
                        self.corrupt += 1
                    self._end += len(line)
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        self._writer.close()
