"""The work behind `harnessctl run`: config, folder, progress, table."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harnessctl import recipes
from harnessctl.assembly import RunConfig, answer, open_world_of, planned
from harnessctl.bundle.files import Bundle
from harnessctl.cli import output
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import compiled, open_bundle, project_root
from harnessctl.cli.transcript import summary_rows
from harnessctl.errors import HarnessctlError, StorageError, UsageError
from harnessctl.records.comment import CommentInput
from harnessctl.records.requests import read_requests
from harnessctl.records.run import Run
from harnessctl.records.trajectory import Trajectory
from harnessctl.runs import RunFolder, git_commit, package_versions, utc_now
from harnessctl.runtime.agent import Agent
from harnessctl.simulate.world import LiveWorld
from harnessctl.trajectory import ids_done

RECORDS = "trajectories.jsonl"


@dataclass(frozen=True)
class RunCommand:
    """What the command line asked for. `run` answers and gives the exit code."""

    target: str | None
    overrides: list[str]
    input: str | None
    run_dir: Path | None
    resume: Path | None
    project: Path | None
    json: bool

    @classmethod
    def of(cls, arguments: Sequence[str], input_: str | None, **options: Any) -> RunCommand:
        """Tell the harness or bundle (an argument without `=`) from the keys."""
        targets = [a for a in arguments if "=" not in a]
        if len(targets) > 1:
            raise UsageError(f"one harness or bundle at a time; got {', '.join(targets)}", hint="keys are KEY=VALUE")
        overrides = [a for a in arguments if "=" in a]
        return cls(target=targets[0] if targets else None, overrides=overrides, input=input_, **options)

    def with_overrides(self, overrides: list[str]) -> RunCommand:
        """The same command with other keys."""
        return replace(self, overrides=overrides)

    def config(self) -> tuple[dict[str, Any], RunConfig]:
        """The resolved recipe, plain and typed."""
        try:
            root: Path | None = project_root(self.project)
        except UsageError:
            root = None
        plain = recipes.compose(root, "run", self.overrides)
        return plain, recipes.typed(plain, RunConfig, job="run")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self) -> int:
        """Answer every request; 0 when each has its trajectory, 1 when some have none, 130 when interrupted."""
        plain, config = self.config()
        requests = planned(self._requests(), config)
        bundle, root = open_bundle(self.target, self.project, harness=config.harness)
        with ExitStack() as opened:
            world = open_world_of(root, bundle, config.world)
            if world is not None:
                opened.enter_context(world)
            return self._answer(bundle, root, plain, config, requests, world)

    def _answer(
        self,
        bundle: Bundle,
        root: Path | None,
        plain: dict[str, Any],
        config: RunConfig,
        requests: list[CommentInput],
        world: LiveWorld | None,
    ) -> int:
        folder = self._folder(root or Path.cwd(), bundle, config, plain, world.digest if world else None)
        records = folder.path / RECORDS
        done_before = set(ids_done(records))
        if self.resume is not None:
            output.talk(f"resuming {folder.path}: {len(done_before)} of {len(requests)} requests are recorded")
        shown: list[Trajectory] = []
        progress = Progress("answering", total=len(requests), done=sum(r.id in done_before for r in requests))

        def on_done(trajectory: Trajectory) -> None:
            shown.append(trajectory)
            progress.advance(f"{trajectory.id}: {trajectory.stop}, {trajectory.took_s:.1f} s")

        def on_open(agent: Agent) -> None:
            for warning in agent.warnings:
                output.talk(f"warning: {warning}")

        status, code = "failed", 1
        try:
            with progress:
                asyncio.run(
                    answer(
                        bundle,
                        config,
                        requests,
                        records,
                        world=world,
                        bundles=lambda name: compiled(_needed(root, name), name),
                        done_before=done_before,
                        on_done=on_done,
                        on_open=on_open,
                    )
                )
            status, code = "done", 0
        except KeyboardInterrupt:
            status, code = "interrupted", 130
            output.talk(f"interrupted; go on with --resume {folder.path}")
        finally:
            self._finish(folder, requests, done_before, shown, status)
        self._show(folder, shown)
        return code

    def _requests(self) -> list[CommentInput]:
        if self.input is None:
            raise UsageError("--input is needed", hint="--input FILE, or --input - for standard input")
        if self.input == "-":
            return read_requests(sys.stdin.buffer, source="<stdin>")
        path = Path(self.input)
        try:
            with path.open("rb") as file:
                return read_requests(file, source=self.input)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error

    def _folder(
        self, root: Path, bundle: Bundle, config: RunConfig, plain: dict[str, Any], world: str | None
    ) -> RunFolder:
        """A new run's folder, or the one to resume, which must be of the same bundle and config."""
        text = recipes.to_yaml(plain)
        record = Run(
            job="run",
            name=bundle.name,
            started=utc_now(),
            config="",
            bundle=bundle.digest,
            harness=f"{bundle.name}-{bundle.version}",
            world=world,
            policy=config.policy if config.policy == "scripted" else f"{config.policy}:{config.model.name}",
            seeds={"run": config.seed},
            versions=package_versions(),
            commit=git_commit(root),
            argv=sys.argv[1:],
            outputs={"trajectories": RECORDS},
        )
        if self.resume is None:
            return RunFolder.create(root, record, text, folder=self.run_dir)
        folder = RunFolder.open(self.resume)
        for what, before, now in (
            ("bundle", folder.record.bundle, bundle.digest),
            ("world", folder.record.world, world),
            ("config", (folder.path / "config.yaml").read_text(encoding="utf-8"), text),
        ):
            if before != now:
                raise UsageError(
                    f"{folder.path} was made with another {what}", hint="resume with the same, or start a new run"
                )
        folder.record = msgspec.structs.replace(folder.record, status="running", finished=None)
        folder.save()
        return folder

    def _finish(
        self, folder: RunFolder, requests: list[CommentInput], before: set[str], shown: list[Trajectory], status: str
    ) -> None:
        counts = Counter(folder.record.counts)
        counts.update(t.stop for t in shown)
        counts["requests"] = len(requests)
        counts["done"] = len(before | {t.id for t in shown})
        folder.record.counts.update(counts)
        folder.finish(status)

    def _show(self, folder: RunFolder, shown: list[Trajectory]) -> None:
        records = folder.path / RECORDS
        if self.json:
            output.json_data(
                {
                    "run": str(folder.path),
                    "trajectories": str(records),
                    "counts": folder.record.counts,
                    "status": folder.record.status,
                }
            )
            return
        if shown:
            output.table(("id", "asked", "skills", "tools", "said", "ended"), summary_rows(shown))
        output.talk("  ".join(f"{name} {count}" for name, count in folder.record.counts.items()))
        output.data(str(records))


def _needed(root: Path | None, name: str) -> Path:
    if root is None:
        raise HarnessctlError(f"the judge {name!r} is a harness of the project, and there is no project here")
    return root
