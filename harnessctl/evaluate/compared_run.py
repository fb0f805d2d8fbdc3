"""Compared run: of a run folder of `eval`, what a comparison needs: what was asked, of whom, and the scores by scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.runs import RunFolder
from harnessctl.storage import digest_bytes, read_json_lines


@dataclass(slots=True)
class ComparedItem:
    """One scenario: the digest of what was asked (scenario with gold, and the variant where there is one), and its scores,
    one a repeat."""

    asked: str
    family: str
    scores: list[Score] = field(default_factory=list)

    def mean(self, metric: str) -> float | None:
        """The mean over the repeats that have the metric."""
        values = [value for score in self.scores if (value := score.value(metric)) is not None]
        return sum(values) / len(values) if values else None

    @property
    def reasons(self) -> list[str]:
        """What cost something, each once."""
        said = (
            reason
            for score in self.scores
            for name in (score.rubrics or DIMENSIONS)
            for reason in score.reasons.get(name, ())
        )
        return list(dict.fromkeys(said))


@dataclass(slots=True)
class ComparedRun:
    """`system` is policy and harness as a person names them; `templates` the digests of the chat templates that were used."""

    folder: Path
    suite: str
    system: str
    bundle: str | None
    world: str | None
    templates: frozenset[str | None]
    items: dict[str, ComparedItem]

    def told(self) -> str:
        """The system with the beginning of its harness's digest."""
        return f"{self.system} ({(self.bundle or 'no bundle')[:12]})"


class _Template(msgspec.Struct):
    template: str | None = None


def read_compared(path: Path) -> ComparedRun:
    """Read a run folder. UsageError when it is not a run of eval, RecordError when a file cannot be read or lines are missing,
    or one scenario stands twice with one repeat."""
    folder = RunFolder.open(path)
    record = folder.record
    if record.job != "eval":
        raise UsageError(f"{path} is a run of `harnessctl {record.job}`", hint="give runs of eval")
    asked = _asked(folder.path)
    items: dict[str, ComparedItem] = {}
    seen: set[tuple[str, int]] = set()
    for score in read_records(folder.path, "scores"):
        if (score.scenario, score.repeat) in seen:
            raise RecordError(f"{path_of(folder.path, 'scores')}: {score.scenario} stands there twice")
        seen.add((score.scenario, score.repeat))
        if score.scenario not in asked:
            raise RecordError(f"{path_of(folder.path, 'scenarios')}: {score.scenario}, which has a score, is not there")
        item = items.setdefault(score.scenario, ComparedItem(asked[score.scenario], score.family))
        item.scores.append(score)
    if not items:
        raise UsageError(f"{path} has no scores yet", hint=f"`harnessctl eval --resume {path}`")
    return ComparedRun(
        folder=path,
        suite=str(record.extra.get("suite", record.name)),
        system=" under ".join(name for name in (record.policy, record.harness) if name),
        bundle=record.bundle,
        world=record.world,
        templates=frozenset(
            msgspec.convert(document, _Template).template
            for _, document in read_json_lines(path_of(folder.path, "trajectories"))
        ),
        items=items,
    )


def _asked(folder: Path) -> dict[str, str]:
    """The digest of each scenario as it was asked, whatever repeat it was, and of the variant's record."""
    variations = [document for _, document in _lines(folder, "variations")]
    found: dict[str, str] = {}
    for number, (_, scenario) in enumerate(_lines(folder, "scenarios")):
        name = str(scenario["id"])
        if name in found:
            continue
        scenario["request"] = {**scenario["request"], "id": name}
        variation = variations[number] if number < len(variations) else None
        found[name] = digest_bytes(orjson.dumps([scenario, variation], option=orjson.OPT_SORT_KEYS))
    return found


def _lines(folder: Path, name: str) -> list[tuple[int, dict[str, Any]]]:
    path = path_of(folder, name)
    return list(read_json_lines(path)) if path.exists() else []
