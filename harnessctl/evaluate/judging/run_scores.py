"""Run scores: a panel's pass over the records of a run: its verdicts in scores.jsonl, the rules' beside them.

What always holds: the run's trajectories are not touched; nothing is replaced before every item has its votes; scores.jsonl
is replaced last, so that a pass which was broken off leaves the old scores, and its votes are not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.evaluate.judging.agreement import STEPS, Agreement, agreement
from harnessctl.evaluate.judging.case import Case, case_of
from harnessctl.evaluate.judging.comparing import PanelReport, panel_report
from harnessctl.evaluate.judging.panel import Jury, Panel, open_panel
from harnessctl.evaluate.judging.verdict import verdict
from harnessctl.evaluate.judging.votes_files import write_votes
from harnessctl.evaluate.judging.voting import collect
from harnessctl.evaluate.rescoring import scores_by_rules, write_scores
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.records.vote import Vote
from harnessctl.runtime.protocols import Model
from harnessctl.score.rules import UNSCORED
from harnessctl.simulate.world import LiveWorld
from harnessctl.storage import write_atomic
from harnessctl.trajectory import read_trajectories

RULES = "scores.rules.jsonl"
REPORT = "judging.json"

_encoder = msgspec.json.Encoder()


class JudgedRun(msgspec.Struct, kw_only=True):
    """What a pass came to: the panel's report, and how far it agrees with the rules (the reference) on the same items."""

    panel: PanelReport
    rules: dict[str, Agreement]


async def judge_run(
    folder: Path,
    root: Path,
    jury: Jury,
    *,
    world: LiveWorld | None,
    workers: int,
    tries: int = 3,
    writes: Collection[str] = (),
    loader: str = "load_skill",
    models: dict[str, Model] | None = None,
    on_vote: Callable[[Vote], None] | None = None,
    on_begin: Callable[[int], None] | None = None,
) -> JudgedRun:
    """Judge the run in `folder`, and replace its scores. `on_begin` is told how many votes there are to be.

    RecordError when the records are not of the same items; UsageError when the run was made with other tables than `world`
    has now, for the judge would look facts up that the host was never told.
    """
    found = scores_by_rules(folder, writes=writes, loader=loader)
    scenarios: list[Scenario] = list(read_records(folder, "scenarios"))
    trajectories = list(read_trajectories(path_of(folder, "trajectories")))
    cases: list[Case | None] = []
    for scenario, trajectory, _ in zip(scenarios, trajectories, found.after, strict=False):
        cases.append(_case(folder, scenario, trajectory, jury, world))
    asked = [case for case in cases if case is not None]
    if on_begin is not None:
        on_begin(len(asked) * len(jury.voters))
    async with open_panel(root, jury, world=world, tries=tries, models=models) as panel:
        given = iter(await collect(panel, asked, workers=workers, on_vote=on_vote))
        votes = [next(given) if case is not None else [] for case in cases]
        write_votes(folder, panel, votes)
    scores = [verdict(score, of_item, jury.scorer) for score, of_item in zip(found.after, votes, strict=True)]
    grades = [{name: getattr(score, name) for name in STEPS} for score in scores]
    done = JudgedRun(panel=panel_report(jury, votes, grades), rules=_beside_rules(found.after, scores))
    write_atomic(folder / REPORT, msgspec.json.format(_encoder.encode(done), indent=2) + b"\n")
    write_scores(folder / RULES, found.after)
    write_scores(path_of(folder, "scores"), scores)
    return done


def drop_judging(folder: Path) -> None:
    """Take away what a panel left in a run whose scores are the rules' again; its votes stay."""
    for name in (RULES, REPORT, "judging.md"):
        (folder / name).unlink(missing_ok=True)


async def judge_one(panel: Panel, trajectory: Trajectory, scenario: Scenario, rules: Score) -> Score:
    """The score of one trajectory by an open panel (of one voter, or of more): what a rejection or reward judge says.

    `rules` is the rules' score of it, whose Tool Rationality and Skill Selection are kept.
    """
    if trajectory.stop in UNSCORED:
        return verdict(rules, [], panel.jury.scorer)
    case = case_of(trajectory, gold=scenario.gold if panel.jury.sees_gold else None)
    return verdict(rules, await panel.votes(case), panel.jury.scorer)


def _case(folder: Path, scenario: Scenario, trajectory: Trajectory, jury: Jury, world: LiveWorld | None) -> Case | None:
    """The case of an item; None where its request failed by itself."""
    if trajectory.stop in UNSCORED:
        return None
    if world is not None and trajectory.world is not None and trajectory.world != world.digest:
        raise UsageError(
            f"{folder}: {trajectory.id} was answered with tables {trajectory.world[:12]}, and {world.name} is "
            f"{world.digest[:12]} now",
            hint="a judge looks facts up: judge a run with the tables that it was made with",
        )
    try:
        return case_of(trajectory, gold=scenario.gold if jury.sees_gold else None)
    except msgspec.ValidationError as error:
        raise RecordError(f"{folder}: the request of {trajectory.id} is none: {error}") from error


def _beside_rules(rules: Sequence[Score], panel: Sequence[Score]) -> dict[str, Agreement]:
    pairs = list(zip(rules, panel, strict=True))
    return {name: agreement(((getattr(a, name), getattr(b, name)) for a, b in pairs), name) for name in STEPS}
