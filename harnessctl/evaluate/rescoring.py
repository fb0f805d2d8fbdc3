"""Rescoring: the scores of a run made anew from its records, with neither harness nor world nor model."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from harnessctl.bundle.variation import Variation
from harnessctl.errors import RecordError
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.evaluate.outcome import EndTables
from harnessctl.evaluate.repeats import repeat_of
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import Score
from harnessctl.score.rules import RuleScorer
from harnessctl.storage import write_atomic
from harnessctl.trajectory import read_trajectories

_encoder = msgspec.json.Encoder()


class Rescored(msgspec.Struct, kw_only=True):
    """Scores made anew, and those that were on disk; `is_kept` says whether there was a file of them."""

    before: list[Score]
    after: list[Score]
    is_kept: bool


def rescore(folder: Path, *, writes: Collection[str] = (), loader: str = "load_skill") -> int:
    """Replace scores.jsonl, atomically; returns how many scores changed. `writes` names the harness's tools that write,
    `loader` the one that loads skills.

    Where scores.jsonl is gone, every trajectory is scored. RecordError, and nothing is replaced, when the folder holds no
    scenarios, or its files are not of the same items.
    """
    found = scores_by_rules(folder, writes=writes, loader=loader)
    write_scores(path_of(folder, "scores"), found.after)
    if not found.is_kept:
        return len(found.after)
    return sum(one != other for one, other in zip(found.before, found.after, strict=True))


def write_scores(path: Path, scores: Iterable[Score]) -> None:
    """Replace a file of scores, atomically."""
    write_atomic(path, b"".join(_encoder.encode(score) + b"\n" for score in scores))


def scores_by_rules(folder: Path, *, writes: Collection[str] = (), loader: str = "load_skill") -> Rescored:
    """The scores of a run by the rules, replacing nothing; see `rescore`."""
    scorer = RuleScorer(writes, loader=loader)
    scenarios: list[Scenario] = list(read_records(folder, "scenarios"))
    if not scenarios:
        raise RecordError(f"{folder}: no scenarios are recorded there", hint="give a run folder of `harnessctl eval`")
    before: list[Score] = list(read_records(folder, "scores"))
    variations: list[Variation] = list(read_records(folder, "variations"))
    is_kept = path_of(folder, "scores").exists()
    is_varied = bool(variations) or any(score.variant is not None for score in before)
    ends: dict[str, EndTables] = {tables.id: tables for tables in read_records(folder, "end_states")}
    after: list[Score] = []
    for number, (scenario, trajectory) in enumerate(
        zip(scenarios, read_trajectories(path_of(folder, "trajectories")), strict=False)
    ):
        if is_kept and number == len(before):
            break  # a run that was broken off may have lines of an item that has no score yet
        if is_varied and number >= len(variations):
            raise _short(folder, "variations", number)
        if trajectory.id != scenario.request.id:
            raise RecordError(f"{folder}: trajectory {number + 1} is of {trajectory.id}, the scenario of {scenario.id}")
        tables = ends.get(trajectory.id)
        score = scorer.score(
            trajectory,
            scenario,
            variation=variations[number] if is_varied else None,
            after=tables.tables if tables is not None else None,
        )
        score.repeat = repeat_of(trajectory.id, scenario.id)
        after.append(score)
    if is_kept and len(after) < len(before):
        raise _short(folder, "scenarios" if len(scenarios) < len(before) else "trajectories", len(after))
    return Rescored(before=before, after=after, is_kept=is_kept)


def _short(folder: Path, name: str, count: int) -> RecordError:
    return RecordError(
        f"{path_of(folder, name)}: ends after {count} of the run's items", hint="lines of it are missing"
    )
