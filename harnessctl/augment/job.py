"""Job: variants made, recorded in order and counted; the work behind `harnessctl augment`.

What always holds: the files depend on the parent, the envelope, the seed, the rewriter's cache and the count alone, not on
the number of workers or on how often the job was broken off; a record is written after its variant, in the order of the
numbers, so that the job goes on at the first number that is in neither file; memory does not grow with the count.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from harnessctl.augment.counting import Counting
from harnessctl.augment.coverage import Refused
from harnessctl.augment.workers import results
from harnessctl.bundle.files import Bundle, encode_bundle
from harnessctl.bundle.variation import Variation
from harnessctl.errors import LawBroken, RecordError
from harnessctl.storage import JsonLinesWriter, cut_torn_line, read_json_lines, write_atomic

RECORDS = "records.jsonl"
REFUSALS = "refused.jsonl"
VARIANTS = "variants"
#: The bundle that was varied, kept with its records.
PARENT = "parent.bundle.json"

_encoder = msgspec.json.Encoder()


class Made(Protocol):
    """A variant and its record."""

    @property
    def bundle(self) -> Bundle: ...
    @property
    def variation(self) -> Variation: ...


class Maker(Protocol):
    """Makes variants: `augment.variants.Augmenter`."""

    def variant(self, *, seed: int, number: int) -> Made:
        """Variant `number` of the stream of `seed`. LawBroken says which law it breaks, and why."""
        ...


@dataclass(frozen=True)
class Job:
    """`n` variants of the stream of `seed` into `folder`. `open_maker` is pickled where there are several workers."""

    open_maker: Callable[[], Maker]
    folder: Path
    seed: int
    n: int
    workers: int = 1
    bundles: bool = False

    def run(self, counting: Counting, on_done: Callable[[str], None]) -> None:
        """Make what is not there yet. `counting` is told of every variant, of those that were there too; `on_done` is
        called with a word on each that is made."""
        start = self.replay(counting)
        make = _Opener(self.open_maker, self.seed, self.folder / VARIANTS if self.bundles else None)
        with (
            JsonLinesWriter(self.folder / RECORDS) as records,
            JsonLinesWriter(self.folder / REFUSALS) as refusals,
        ):
            for record, refused in results(make, start, self.n, workers=self.workers):
                if refused is not None:
                    refusals.write(_encoder.encode(refused))
                    counting.refuse(refused)
                    on_done(f"{refused.number}: refused, law {refused.law}")
                elif record is not None:
                    records.write(record)
                    variation = msgspec.json.decode(record, type=Variation)
                    counting.add(variation)
                    on_done(f"{variation.number}: {variation.variant[:12]}")

    def replay(self, counting: Counting) -> int:
        """Count what is recorded; the first number that is in neither file. Torn lines are cut off before.

        RecordError when a number before the last is missing.
        """
        for name in (RECORDS, REFUSALS):
            cut_torn_line(self.folder / name)
        expected = 0
        recorded = read_variations(self.folder / RECORDS)
        for found in heapq.merge(recorded, _refusals(self.folder / REFUSALS), key=lambda found: found.number):
            if found.number != expected:
                raise RecordError(
                    f"{self.folder}: variant {expected} is not recorded, and {found.number} is",
                    hint="a file of the run was altered or lost; start a new run",
                )
            expected += 1
            if isinstance(found, Variation):
                counting.add(found)
            else:
                counting.refuse(found)
        return expected


def read_variations(path: Path) -> Iterator[Variation]:
    """The records of `path` in order; none when there is no file. RecordError names path, line and cause."""
    if not path.exists():
        return
    for number, document in read_json_lines(path):
        try:
            yield msgspec.convert(document, Variation)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not an augmentation record: {error}") from error


def _refusals(path: Path) -> Iterator[Refused]:
    if not path.exists():
        return
    for number, document in read_json_lines(path):
        try:
            yield msgspec.convert(document, Refused)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not a refusal: {error}") from error


@dataclass(frozen=True)
class _Opener:
    """Makes the function that a worker calls with each number."""

    open_maker: Callable[[], Maker]
    seed: int
    variants: Path | None

    def __call__(self) -> Callable[[int], tuple[bytes | None, Refused | None]]:
        maker = self.open_maker()

        def make(number: int) -> tuple[bytes | None, Refused | None]:
            try:
                made = maker.variant(seed=self.seed, number=number)
            except LawBroken as error:
                return None, Refused(number=number, law=error.law, place=error.place, reason=error.reason)
            if self.variants is not None:
                write_atomic(self.variants / made.bundle.file_name, encode_bundle(made.bundle))
            return _encoder.encode(made.variation), None

        return make
