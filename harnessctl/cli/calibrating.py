"""The work behind `harnessctl eval judge-calibration`: labels, panel, run folder, tables."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harnessctl import recipes
from harnessctl.assembly import open_world_of
from harnessctl.cli import output
from harnessctl.cli.judging import QUIET_S, RoleName, open_jury, said
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import compiled, project_root
from harnessctl.errors import StorageError, UsageError
from harnessctl.evaluate.files import path_of
from harnessctl.evaluate.judging.calibration import (
    REPORT,
    Calibration,
    calibrate,
    curve,
    point,
    read_calibration,
    write_calibration,
)
from harnessctl.evaluate.judging.case import Case, case_of
from harnessctl.evaluate.judging.construction import constructed
from harnessctl.evaluate.judging.labels import LabelSet, label_set, read_items
from harnessctl.evaluate.judging.panel import Jury
from harnessctl.evaluate.judging.tables import calibration_lines, calibration_tables, markdown
from harnessctl.records.calibration import CalibrationItem
from harnessctl.records.run import Run
from harnessctl.records.vote import Vote
from harnessctl.runs import RunFolder, git_commit, package_versions, utc_now
from harnessctl.storage import write_atomic
from harnessctl.trajectory import read_trajectories

JOB = "judge-calibration"
ITEMS = "items.jsonl"
PAGE = "report.md"


class CalibrationConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the job; recipes/judge-calibration/default.yaml says what each key means."""

    judge: RoleName = "panel"
    labels: str | None = None
    replies: str | None = None
    curve: list[str] = []
    workers: Annotated[int, Meta(ge=1, le=256)] = 8
    tries: Annotated[int, Meta(ge=1, le=20)] = 3
    harness: str | None = None
    world: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    n: Annotated[int, Meta(ge=1, le=1_000_000)] = 482


class Calibrated(msgspec.Struct, kw_only=True):
    """What the command came to; `report` is null when it was broken off."""

    run: str
    status: str
    report: Calibration | None = None

    @property
    def code(self) -> int:
        """The exit code: 130 when it was interrupted, 1 when the panel came to no verdict at all."""
        if self.report is None:
            return 130
        return 0 if any(self.report.panel.verdicts.values()) else 1


@dataclass(frozen=True)
class CalibrateCommand:
    """One calibration and its keys."""

    overrides: list[str]
    run_dir: Path | None
    project: Path | None
    json: bool

    @classmethod
    def of(cls, arguments: Sequence[str], *, is_sweep: bool = False, **options: Any) -> list[CalibrateCommand]:
        """A command for each combination of a sweep."""
        others = [name for name in arguments if "=" not in name and name != JOB]
        if others:
            raise UsageError(f"{JOB} judges judges, and {others[0]} a policy", hint="one command each")
        if options.pop("resume") is not None:
            raise UsageError(
                f"{JOB} goes on by itself",
                hint="give the same command again: votes that were given are not asked again",
            )
        keys = [key for key in arguments if "=" in key]
        sweeps = recipes.expand(keys) if is_sweep else [keys]
        found: list[CalibrateCommand] = [cls(overrides=given, **options) for given in sweeps]
        if len(found) > 1 and options["run_dir"] is not None:
            raise UsageError("several runs make a folder each; leave --run-dir out")
        return found

    def config(self) -> tuple[dict[str, Any], CalibrationConfig]:
        """The resolved recipe, plain and typed."""
        plain = recipes.compose(project_root(self.project), JOB, self.overrides)
        return plain, recipes.typed(plain, CalibrationConfig, job=f"eval {JOB}")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self) -> Calibrated:
        """Carry it out. HarnessctlError when it cannot be begun, or a record cannot be written."""
        plain, config = self.config()
        root = project_root(self.project)
        jury = open_jury(root, config.judge)
        earlier = {run: read_calibration(Path(run)) for run in config.curve}
        items = _items(root, config)
        labels = label_set(items, _answered(config))
        points = curve(earlier, labels.digest)
        folder = RunFolder.create(root, _record(root, config, jury), recipes.to_yaml(plain), folder=self.run_dir)
        write_atomic(folder.path / ITEMS, b"".join(msgspec.json.encode(item) + b"\n" for item in items))
        world = open_world_of(root, jury.bundle, None)
        try:
            found = self._judge(folder, root, jury, labels, config, world)
        finally:
            if world is not None:
                world.close()
        if found is None:
            folder.finish("interrupted")
            return Calibrated(run=str(folder.path), status="interrupted")
        found.curve = [*points, point(str(folder.path), found)]
        write_calibration(folder.path, found)
        text = markdown(f"Judge calibration: {found.panel.scorer}", calibration_lines(found), calibration_tables(found))
        write_atomic(folder.path / PAGE, text.encode())
        folder.record.counts.update({"items": found.items} | found.panel.verdicts)
        folder.finish("done")
        if not self.json:
            show(found)
            output.data(str(folder.path / PAGE))
        return Calibrated(run=str(folder.path), status="done", report=found)

    def _judge(
        self, folder: RunFolder, root: Path, jury: Jury, labels: LabelSet, config: CalibrationConfig, world: Any
    ) -> Calibration | None:
        """The calibration; None when it was interrupted."""
        progress = Progress(jury.scorer, total=len(labels.items) * len(jury.voters), quiet_s=QUIET_S)

        def on_vote(vote: Vote) -> None:
            with suppress(OSError):
                progress.advance(f"{vote.id}: {vote.voter} {said(vote)}")

        try:
            with ended_by_signals(), progress, stdout_kept_for_data():
                return asyncio.run(
                    calibrate(
                        folder.path,
                        root,
                        jury,
                        labels,
                        world=world,
                        workers=config.workers,
                        tries=config.tries,
                        on_vote=on_vote,
                    )
                )
        except KeyboardInterrupt:
            with suppress(OSError):
                output.talk("interrupted; give the command again: votes that were given are not asked again")
            return None
        except BaseException:
            with suppress(StorageError):
                folder.finish("failed")
            raise


def show(found: Calibration) -> None:
    """The tables on stdout; what is to be said on stderr."""
    for table in calibration_tables(found):
        output.data(table.title)  # a title of the table's own would wrap at the table's width
        output.table(table.head, table.rows)
    for line in calibration_lines(found):
        output.talk(line)


def _items(root: Path, config: CalibrationConfig) -> list[CalibrationItem]:
    if config.labels is not None:
        return read_items(Path(config.labels))[: config.n]
    if config.replies is not None:
        raise UsageError("replies= says which run labels are of, and there are no labels", hint="give labels=FILE")
    bundle = compiled(root, config.harness)
    output.talk(f"no labels= given: {config.n} items are made by the simulator; their labels are not people's")
    return asyncio.run(constructed(root, bundle, n=config.n, seed=config.seed, world=config.world))


def _answered(config: CalibrationConfig) -> dict[str, Case]:
    """The cases of the run that the labels are of."""
    if config.replies is None:
        return {}
    path = path_of(RunFolder.open(Path(config.replies)).path, "trajectories")
    return {trajectory.id: case_of(trajectory) for trajectory in read_trajectories(path)}


def _record(root: Path, config: CalibrationConfig, jury: Jury) -> Run:
    return Run(
        job=JOB,
        name=f"{config.judge}-{jury.bundle.name}",
        started=utc_now(),
        config="",
        bundle=jury.bundle.digest,
        harness=f"{jury.bundle.name}-{jury.bundle.version}",
        policy=jury.scorer,
        seeds={"eval": config.seed},
        versions=package_versions(),
        commit=git_commit(root),
        argv=sys.argv[1:],
        outputs={"items": ITEMS, "votes": "votes.jsonl", "judgements": "judgements.jsonl", "report": REPORT},
        extra={"project": str(root), "labels": config.labels or "construction"},
    )
