"""One training as the command sees it: its job, what it says before it starts, its folder, its end."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harnessctl import recipes
from harnessctl.cli import output
from harnessctl.cli.process import undisturbed
from harnessctl.cli.project import judge_source
from harnessctl.cli.training_progress import TrainProgress, duration
from harnessctl.errors import HarnessctlError, StorageError, UsageError
from harnessctl.records.run import Run
from harnessctl.runs import RunFolder, git_commit, new_path, package_versions, utc_now
from harnessctl.storage import write_atomic

if TYPE_CHECKING:
    from accelerate import Accelerator

    from harnessctl.bundle.files import Bundle
    from harnessctl.train.budget import Budget
    from harnessctl.train.config import TrainConfig
    from harnessctl.train.job import Job
    from harnessctl.train.stage import Stage
    from harnessctl.train.start import Start

REPORT = "report.md"


class Trained(msgspec.Struct, kw_only=True):
    """What a training came to. `checkpoint` is null when it was broken off; `last` are the metrics of the last step."""

    run: str
    stage: str
    status: str
    steps: int
    checkpoint: str | None = None
    last: dict[str, float] = {}

    @property
    def code(self) -> int:
        """The exit code: 130 when it was interrupted."""
        return 130 if self.status == "interrupted" else 0


def result(folder: RunFolder, status: str) -> Trained:
    """What the run in `folder` has come to."""
    from harnessctl.train.metrics import read_metrics

    lines = read_metrics(folder.path)
    last = {name: value for line in lines if line["step"] == lines[-1]["step"] for name, value in line.items()}
    return Trained(
        run=str(folder.path),
        stage=folder.record.job,
        status=status,
        steps=last.pop("step", 0),
        checkpoint=str(folder.path / "checkpoint") if status == "done" else None,
        last=last,
    )


@dataclass(frozen=True)
class Training:
    """A stage with all that it needs. `run_dir` is where its folder is to be, null: in runs/."""

    stage: Stage
    plain: dict[str, Any]
    config: TrainConfig
    root: Path
    bundle: Bundle | None
    start: Start
    accelerator: Accelerator
    run_dir: Path | None = None

    def talk(self, text: str) -> None:
        """A line for the person, from the first process alone."""
        if self.accelerator.is_main_process:
            with suppress(OSError):  # nobody may be reading our talk any more; the work goes on
                output.talk(text)

    def job(self, before: RunFolder | None) -> Job:
        """The job, in the folder that it is going to have."""
        from accelerate.utils import broadcast_object_list

        from harnessctl.evaluate.job import judges_for
        from harnessctl.train.job import Job
        from harnessctl.train.metrics import Metrics

        chosen = before.path if before is not None else self.run_dir
        paths = [str(chosen or new_path(self.root, self.stage.name, self.config.model.name))]
        if self.accelerator.num_processes > 1:
            broadcast_object_list(paths)
        folder = Path(paths[0]).resolve()
        judges = {} if self.bundle is None else judges_for(self.bundle, judge_source(self.bundle, self.root))
        return Job(
            root=self.root,
            folder=folder,
            config=self.config,
            bundle=self.bundle,
            judges=judges,
            start=self.start.path,
            metrics=Metrics(folder if self.accelerator.is_main_process else None),
            talk=self.talk,
            accelerator=self.accelerator,
            stage=self.stage.name,
            recipe=self.plain,
        )

    def announce(self, job: Job) -> Budget:
        """Say what the training begins from and what it is going to cost, before it starts."""
        from harnessctl.train.start import check_start

        self.talk(self.start.said)
        for warning in check_start(self.start, self.stage.name, job.policy.template.digest):
            self.talk(warning)
        budget = self.stage.budget(job)
        for line in estimate(job, budget, self.accelerator.num_processes):
            self.talk(line)
        return budget

    def folder(self, before: RunFolder | None, job: Job, budget: Budget) -> RunFolder:
        """A new run's folder, or the one to resume, which must have begun from the same."""
        if before is not None:
            self._check_same(before)
            points = job.points()
            self.talk(f"resuming {before.path}: {points.newest_step() or 0} of {budget.steps} steps are kept")
            for why in points.skipped:
                self.talk(f"warning: a state that was kept is passed over: {why}")
            return before
        if self.accelerator.is_main_process:
            return RunFolder.create(
                self.root, self._record(job, budget), recipes.to_yaml(self.plain), folder=job.folder
            )
        return RunFolder(job.folder, self._record(job, budget))

    def _record(self, job: Job, budget: Budget) -> Run:
        config, bundle = self.config, self.bundle
        extra = {
            "project": str(self.root),
            "model": config.model.name,
            "debug": config.debug,
            "start": str(self.start.path),
            "weights": self.start.digest(),
            "template": job.policy.template.digest,
            "budget": {"tokens": budget.tokens, "sampled": budget.sampled, "steps": budget.steps, "note": budget.note},
        }
        return Run(
            job=self.stage.name,
            name=config.model.name,
            started=utc_now(),
            config="",
            bundle=None if bundle is None else bundle.digest,
            harness=None if bundle is None else f"{bundle.name}-{bundle.version}",
            world=self._world(),
            policy=config.model.name,
            seeds={"train": config.seed},
            versions=package_versions(),
            commit=git_commit(self.root),
            argv=sys.argv[1:],
            outputs={"metrics": "metrics.jsonl", "checkpoint": "checkpoint", "report": REPORT},
            extra=extra,
        )

    def _world(self) -> str | None:
        """The digest of the world that scenarios come from."""
        from harnessctl.assembly import open_world_of

        data = self.plain.get("data")
        named = self.plain.get("world") or (data.get("world") if isinstance(data, dict) else None)
        world = None if self.bundle is None else open_world_of(self.root, self.bundle, named)
        if world is None:
            return None
        world.close()
        return world.digest

    def _check_same(self, before: RunFolder) -> None:
        bundle, world = None if self.bundle is None else self.bundle.digest, self._world()
        known = before.record
        for what, was, now in (
            ("bundle", known.bundle, bundle),
            ("world", known.world, world),
            ("start", known.extra.get("weights"), self.start.digest()),
        ):
            if was != now:
                raise UsageError(
                    f"{before.path} was made with another {what}: {(was or 'none')[:12]}, now {(now or 'none')[:12]}",
                    hint="resume with the same, or start a new run",
                )

    def carry_out(self, folder: RunFolder, job: Job, budget: Budget) -> Trained:
        """Train, and write down how it ended. The folder is held by this process."""
        if folder.record.status != "running" and self.accelerator.is_main_process:
            folder.record = msgspec.structs.replace(folder.record, status="running", finished=None)
            folder.save()
        progress = TrainProgress(self.stage.name, total=budget.steps, done=job.points().newest_step() or 0)
        if self.accelerator.is_main_process:
            job.metrics.show = progress.show
        again = f"harnessctl train {self.stage.name} --resume {folder.path}"
        try:
            with progress, job.metrics:
                self.stage.run(job)
            status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
            self.talk(f"interrupted; go on with `{again}`")
        except BaseException as error:
            if isinstance(error, HarnessctlError):
                self.talk(f"the run is in {folder.path}; go on, once what is wrong is mended, with `{again}`")
            # What went wrong is for the person to read, also where a full disk does not take it into the record.
            with undisturbed(), suppress(StorageError):
                self._finish(folder, job, "failed")
            raise
        with undisturbed():
            self._finish(folder, job, status)
        self.talk(f"report: {folder.path / REPORT}")
        return result(folder, status)

    def _finish(self, folder: RunFolder, job: Job, status: str) -> None:
        if not self.accelerator.is_main_process:
            return
        write_atomic(folder.path / REPORT, self._report(job, status).encode())
        folder.record.counts["steps"] = result(folder, status).steps
        folder.finish(status)

    def _report(self, job: Job, status: str) -> str:
        from harnessctl.train.metrics import read_metrics
        from harnessctl.train.report import markdown

        lines = read_metrics(job.folder)
        seconds = sum(line.get("seconds/data", 0.0) + line.get("seconds/update", 0.0) for line in lines)
        facts = [
            ("status", status),
            ("start", str(self.start.path)),
            ("harness", "none" if self.bundle is None else f"{self.bundle.name} {self.bundle.digest[:12]}"),
            ("steps", f"{lines[-1]['step'] if lines else 0} in {duration(seconds)}"),
            ("checkpoint", str(job.checkpoint) if status == "done" else "none"),
        ]
        return markdown(f"{self.stage.name}: {self.config.model.name}", facts, lines)


def estimate(job: Job, budget: Budget, processes: int) -> list[str]:
    """The budget and the time that it takes, as lines for a person."""
    from harnessctl.train.budget import probe

    spent = f"budget: {budget.steps} steps, {budget.tokens:,.0f} tokens forward and backward"
    spent += f", {budget.sampled:,.0f} sampled" if budget.sampled else ""
    note = f" ({budget.note})" if budget.note else ""
    if budget.seconds is not None:
        return [spent + note, f"time: about {duration(budget.seconds)}, by the stage's own estimate"]
    if job.config.sharding != "none":
        return [spent + note, "time: told after the first steps, since sharded weights are not timed beforehand"]
    speed = probe(job.policy, budget)
    sampling = f", {1 / speed.sampled_s:,.0f} sampled" if speed.sampled_s else ""
    return [
        spent + note,
        f"time: about {duration(speed.seconds(budget, processes))}, from one micro-batch timed here: "
        f"{1 / speed.trained_s:,.0f} tokens/s trained{sampling}",
    ]
