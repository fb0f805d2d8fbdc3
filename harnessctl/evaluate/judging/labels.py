"""Labels: a file of calibration items, read and settled: what each item's annotators say together.

What always holds: what cannot be used is counted and named, never guessed: an item that is labelled twice (the first
line counts), one that is nowhere to be found, one whose annotators come to no majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError
from harnessctl.evaluate.judging.aggregation import majority, median
from harnessctl.evaluate.judging.agreement import STEPS
from harnessctl.evaluate.judging.case import Case, labelled_case
from harnessctl.records.calibration import CalibrationItem
from harnessctl.storage import digest_bytes, read_json_lines


@dataclass(slots=True, frozen=True)
class Labelled:
    """One item that can be judged: its case, and what its annotators say together, by dimension (null: no majority)."""

    item: CalibrationItem
    case: Case
    reference: dict[str, float | None]


@dataclass(slots=True)
class LabelSet:
    """The items of a file in order. `duplicates` and `absent` are ids that were passed over, `split` those whose annotators
    come to no majority, by dimension; `pairwise` is how often two annotators of an item agree, (same, pairs).
    """

    items: list[Labelled] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    split: dict[str, list[str]] = field(default_factory=lambda: {name: list[str]() for name in STEPS})
    pairwise: dict[str, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(STEPS, (0, 0)))

    @property
    def sources(self) -> dict[str, int]:
        """How many items have labels of each source."""
        return dict(sorted(Counter(each.item.source for each in self.items).items()))

    @property
    def roles(self) -> dict[str, int]:
        """How many items are of the dev set, and of the test set."""
        return dict(sorted(Counter(each.item.role for each in self.items).items()))

    @property
    def digest(self) -> str:
        """SHA-256 of what is judged and of what it is held against: equal for runs that may be set side by side."""
        content = [(msgspec.to_builtins(each.case), each.reference) for each in self.items]
        return digest_bytes(msgspec.json.encode(content, order="sorted"))


def read_items(path: Path) -> list[CalibrationItem]:
    """The items of a file. RecordError names path, line and cause."""
    items: list[CalibrationItem] = []
    for number, document in read_json_lines(path):
        try:
            item = msgspec.convert(document, CalibrationItem)
        except msgspec.ValidationError as error:
            raise RecordError(
                f"{path}:{number}: not a calibration item: {error}",
                hint="`harnessctl schema CalibrationItem`; `harnessctl docs judges` shows one",
            ) from error
        for label in item.labels:
            if label.effectiveness is not None and label.effectiveness not in STEPS["effectiveness"]:
                raise RecordError(f"{path}:{number}: effectiveness {label.effectiveness:g}; allowed 0, 0.5, 1")
        items.append(item)
    if not items:
        raise RecordError(f"{path}: no items are there", hint="one JSON object of kind CalibrationItem a line")
    return items


def label_set(items: Iterable[CalibrationItem], answered: Mapping[str, Case]) -> LabelSet:
    """The items that can be judged; `answered` are the cases of a run by id, for lines that hold no request."""
    found = LabelSet()
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            found.duplicates.append(item.id)
            continue
        seen.add(item.id)
        case = labelled_case(item) or answered.get(item.id)
        if case is None:
            found.absent.append(item.id)
            continue
        reference = {
            "accuracy": majority([label.accuracy for label in item.labels]),
            "effectiveness": median([label.effectiveness for label in item.labels]),
        }
        for name, value in reference.items():
            given = [grade for label in item.labels if (grade := getattr(label, name)) is not None]
            if value is None and given:
                found.split[name].append(item.id)
            pairs = list(combinations(given, 2))
            same, total = found.pairwise[name]
            found.pairwise[name] = (same + sum(a == b for a, b in pairs), total + len(pairs))
        found.items.append(Labelled(item, case, reference))
    return found
