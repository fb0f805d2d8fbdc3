"""The work behind `harnessctl run`: config, folder, progress, table."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harnessctl import recipes
from harnessctl.assembly import RunConfig, answer, open_world_of, planned
from harnessctl.bundle.files import Bundle
from harnessctl.cli import output
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data, undisturbed
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import judge_source, open_bundle, project_root
from harnessctl.cli.transcript import printable, summary_rows
from harnessctl.errors import StorageError, UsageError
from harnessctl.policies import open_policy
from harnessctl.records.comment import CommentInput
from harnessctl.records.requests import read_requests, request_lines
from harnessctl.records.run import Run
from harnessctl.records.trajectory import StopReason, Trajectory
from harnessctl.runs import RunFolder, git_commit, package_versions, utc_now
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.judge import BundleSource
from harnessctl.runtime.protocols import Model
from harnessctl.runtime.viewer import recordable_request
from harnessctl.simulate.world import LiveWorld
from harnessctl.storage import cut_torn_line
from harnessctl.trajectory import request_digest, requests_done

RECORDS = "trajectories.jsonl"
#: Rows of the table that a run ends with; `harnessctl view` shows all.
SHOWN = 100
#: Keys that change nothing of what a request comes to, and so may differ when a run is resumed.
FREE_KEYS = frozenset({"workers"})


class Ran(msgspec.Struct, kw_only=True):
    """What a run came to: its folder, its records, and what run.json counts."""

    run: str
    trajectories: str
    counts: dict[str, int]
    status: str

    @property
    def code(self) -> int:
        """The exit code: 0 when each request has its trajectory, 130 when the run was interrupted."""
        return 130 if self.status == "interrupted" else 0


@dataclass(frozen=True)
class RunCommand:
    """What the command line asked for. `run` answers, and shows a table unless JSON is wanted."""

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
        """The resolved recipe, plain and typed; that of the run to resume where no keys are given."""
        plain: dict[str, Any]
        if self.resume is not None and not self.overrides:
            path = self.resume / "config.yaml"
            plain = recipes.from_yaml(RunFolder.open(self.resume).config_yaml(), source=str(path))
        else:
            try:
                root: Path | None = project_root(self.project)
            except UsageError:
                root = None
            plain = recipes.compose(root, "run", self.overrides)
        return plain, recipes.typed(plain, RunConfig, job="run")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self) -> Ran:
        """Answer every request. HarnessctlError when that cannot be begun, or a record cannot be written."""
        if self.resume is not None and self.run_dir is not None:
            raise UsageError("a run that is resumed has its folder; leave --run-dir out")
        plain, config = self.config()
        before: dict[str, Any] = {} if self.resume is None else RunFolder.open(self.resume).record.extra
        requests = planned(self._requests(before), config)
        if not requests:
            raise UsageError("the input holds no request", hint="`harnessctl docs running` shows its form")
        project = Path(before["project"]) if self.project is None and "project" in before else self.project
        bundle, root = open_bundle(self.target or before.get("target"), project, harness=config.harness)
        with ExitStack() as opened:
            world = open_world_of(root, bundle, config.world)
            if world is not None:
                opened.enter_context(world)
            # Before there is a folder: what is wrong with the policy leaves no run behind.
            model = open_policy(config.policy, config.model, script=config.script)
            folder = self._folder(root, bundle, config, plain, world.digest if world else None)
            opened.enter_context(ended_by_signals())
            records = opened.enter_context(folder.held(RECORDS))
            answering = Answering(folder, records, requests, is_resumed=self.resume is not None)
            ran = answering.run(bundle, config, model, world, judge_source(bundle, root))
            if not self.json:
                answering.show()
            return ran

    def _requests(self, before: dict[str, Any]) -> list[CommentInput]:
        """The input's requests; of a run that is resumed the same file, unless another is given."""
        source = self.input or before.get("input")
        if source is None:
            raise UsageError("--input is needed", hint="--input FILE, or --input - for standard input")
        if source == "-":
            return read_requests(request_lines(sys.stdin.buffer), source="<stdin>")
        path = Path(source)
        try:
            with path.open("rb") as file:
                return read_requests(request_lines(file), source=source)
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error

    def _folder(
        self, root: Path | None, bundle: Bundle, config: RunConfig, plain: dict[str, Any], world: str | None
    ) -> RunFolder:
        """A new run's folder, or the one to resume, which must be of the same bundle, world and config."""
        if self.resume is not None:
            folder = RunFolder.open(self.resume)
            record = folder.record
            for what, was, now in (("bundle", record.bundle, bundle.digest), ("world", record.world, world)):
                if was != now:
                    raise UsageError(
                        f"{folder.path} was made with another {what}: {(was or 'none')[:12]}, now {(now or 'none')[:12]}",
                        hint="resume with the same, or start a new run",
                    )
            then = recipes.from_yaml(folder.config_yaml(), source=str(folder.path / "config.yaml"))
            differing = [key for key in recipes.differing_keys(then, plain) if key not in FREE_KEYS]
            if differing:
                raise UsageError(
                    f"{folder.path} was made with another config: {', '.join(differing)}",
                    hint="leave the keys out to go on with the run's own",
                )
            return folder
        extra = {
            "input": _absolute(self.input),
            "target": _absolute(self.target) if self.target and Path(self.target).is_file() else self.target,
            "project": None if root is None else str(root),
        }
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
            commit=git_commit(root or Path.cwd()),
            argv=sys.argv[1:],
            outputs={"trajectories": RECORDS},
            extra={key: value for key, value in extra.items() if value is not None},
        )
        return RunFolder.create(root or Path.cwd(), record, recipes.to_yaml(plain), folder=self.run_dir)


class Answering:
    """One run under way: what is done before, what comes of the rest, and how it is told."""

    def __init__(self, folder: RunFolder, records: Path, requests: list[CommentInput], *, is_resumed: bool) -> None:
        self._folder = folder
        self._records = records
        self._requests = requests
        cut_torn_line(records)
        done = requests_done(records)
        self._before = set(done)
        self._stops: Counter[str] = Counter(stop for stop, _ in done.values())
        self._rows: list[tuple[str, ...]] = []
        self._answered = 0
        if is_resumed:
            self._check_same(done)
            output.talk(f"resuming {folder.path}: {len(done)} of {len(requests)} requests are recorded")
            folder.record = msgspec.structs.replace(folder.record, status="running", finished=None)
            folder.save()

    def run(
        self, bundle: Bundle, config: RunConfig, model: Model, world: LiveWorld | None, bundles: BundleSource
    ) -> Ran:
        """Answer the rest. The model is closed."""
        done = sum(request.id in self._before for request in self._requests)
        progress = Progress("answering", total=len(self._requests), done=done)

        def on_done(trajectory: Trajectory) -> None:
            self._stops[trajectory.stop] += 1
            self._answered += 1
            if len(self._rows) < SHOWN:
                self._rows += summary_rows([trajectory])
            with suppress(OSError):  # nobody may be reading our talk any more; the work goes on
                progress.advance(f"{printable(trajectory.id)}: {trajectory.stop}, {trajectory.took_s:.1f} s")

        def on_open(agent: Agent) -> None:
            for warning in agent.warnings:
                output.talk(f"warning: {warning}")

        try:
            with progress, stdout_kept_for_data():
                asyncio.run(
                    answer(
                        bundle,
                        config,
                        self._requests,
                        self._records,
                        model=model,
                        world=world,
                        bundles=bundles,
                        done_before=self._before,
                        on_done=on_done,
                        on_open=on_open,
                    )
                )
            status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
            with suppress(OSError):
                output.talk(f"interrupted; go on with `harnessctl run --resume {self._folder.path}`")
        except BaseException:
            # What went wrong is for the person to read, also where a full disk does not take it into the record.
            with undisturbed(), suppress(StorageError):
                self._finish("failed")
            raise
        with undisturbed():
            self._finish(status)
        return Ran(
            run=str(self._folder.path),
            trajectories=str(self._records),
            counts=self._folder.record.counts,
            status=status,
        )

    def _check_same(self, done: dict[str, tuple[StopReason, str]]) -> None:
        """UsageError when a request that was answered is another one now."""
        changed = [
            request.id
            for request in self._requests
            if request.id in done and done[request.id][1] != request_digest(recordable_request(request))
        ]
        if changed:
            named = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
            raise UsageError(
                f"{output.plural(len(changed), 'request')} of the input changed since they were answered: {named}",
                hint="resume with the same input, to which lines may be added, or start a new run",
            )

    def _finish(self, status: str) -> None:
        counts = dict(self._stops) | {
            "requests": len(self._requests),
            "done": len(self._before) + self._answered,
        }
        self._folder.record.counts.clear()
        self._folder.record.counts.update(counts)
        self._folder.finish(status)

    def show(self) -> None:
        """The table of what was answered now, and the place of the records."""
        record = self._folder.record
        if self._rows:
            output.table(("id", "asked", "skills", "tools", "said", "ended"), self._rows)
        if self._answered > len(self._rows):
            output.talk(f"and {self._answered - len(self._rows)} more: harnessctl view {self._folder.path}")
        output.talk("  ".join(f"{name} {count}" for name, count in record.counts.items()))
        output.data(str(self._records))


def _absolute(path: str | None) -> str | None:
    """A path that holds wherever the run is resumed from; nothing for standard input."""
    return None if path is None or path == "-" else str(Path(path).resolve())
