"""The work behind `harnessctl train`: recipe, start, bundle, folder, budget, progress, report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harnessctl import recipes
from harnessctl.cli import output
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data
from harnessctl.cli.project import open_bundle, project_root
from harnessctl.cli.training_run import Trained, Training, result
from harnessctl.errors import UsageError
from harnessctl.runs import RunFolder, check_free

if TYPE_CHECKING:
    from harnessctl.bundle.files import Bundle
    from harnessctl.train.config import TrainConfig
    from harnessctl.train.stage import Stage

#: Keys that change nothing of what is trained, and so may differ when a run is resumed.
FREE_KEYS = frozenset({"loop.keep", "loop.save_every", "model.threads"})


@dataclass(frozen=True)
class TrainCommand:
    """One stage and its keys."""

    stage: str
    overrides: list[str]
    run_dir: Path | None
    resume: Path | None
    project: Path | None
    json: bool

    @classmethod
    def of(cls, stage: str, keys: Sequence[str], *, is_sweep: bool = False, **options: Any) -> list[TrainCommand]:
        """A command for each combination of a sweep."""
        from harnessctl.train.order import config_of

        config_of(stage)
        if options["resume"] is not None and options["run_dir"] is not None:
            raise UsageError("a run that is resumed has its folder; leave --run-dir out")
        sweeps = recipes.expand(keys) if is_sweep else [list(keys)]
        if len(sweeps) > 1 and (options["resume"] is not None or options["run_dir"] is not None):
            raise UsageError("several runs make a folder each; leave --resume and --run-dir out")
        return [cls(stage=stage, overrides=overrides, **options) for overrides in sweeps]

    @cached_property
    def config(self) -> tuple[dict[str, Any], TrainConfig]:
        """The resolved recipe, plain and typed; that of the run to resume, with the keys of FREE_KEYS that are given."""
        from harnessctl.train.order import config_of

        plain = self._resumed() if self.resume is not None else self._composed()
        return plain, recipes.typed(plain, config_of(self.stage), job=f"train {self.stage}")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config[0])

    def run(self) -> Trained:
        """Train. HarnessctlError when that cannot be begun or go on."""
        from harnessctl.train.engine import check_needs, open_accelerator
        from harnessctl.train.start import find_start

        plain, config = self.config
        check_needs(config, shlex.join(["harnessctl", "train", self.stage, *self.overrides]))
        before = None if self.resume is None else RunFolder.open(self.resume)
        root = self._root(before)
        if before is not None and before.record.status == "done":
            output.talk(f"{before.path} is done already")
            return self._told(result(before, "done"))
        if self.run_dir is not None:
            check_free(self.run_dir)  # before minutes are spent on a model that has no place to go
        bundle = self._bundle(config, root)
        start = find_start(root, self.stage, config if before is None else self._as_begun(config, before))
        with ended_by_signals(), stdout_kept_for_data():
            accelerator = open_accelerator(config)
            opened = Training(self._stage, plain, config, root, bundle, start, accelerator, self.run_dir)
            job = opened.job(before)
            budget = opened.announce(job)
            folder = opened.folder(before, job, budget)
            with folder.held("lock") if accelerator.is_main_process else nullcontext():
                done = opened.carry_out(folder, job, budget)
        return self._told(done) if accelerator.is_main_process else done

    def _told(self, done: Trained) -> Trained:
        """What a training came to, with its checkpoint on stdout."""
        if done.status == "done" and not self.json:
            output.data(done.checkpoint or done.run)
        return done

    @property
    def _stage(self) -> Stage:
        from harnessctl.train.stage import stage_named

        return stage_named(self.stage)

    def _composed(self) -> dict[str, Any]:
        root = _root_of(self.project)
        overrides = recipes.for_model(root, self.stage, self.overrides)
        return _settled(recipes.debugged(recipes.compose(root, self.stage, overrides), overrides))

    def _resumed(self) -> dict[str, Any]:
        assert self.resume is not None
        folder = RunFolder.open(self.resume)
        if folder.record.job != self.stage:
            raise UsageError(
                f"{self.resume} is a run of {folder.record.job}",
                hint=f"give a run of {self.stage}: runs/latest-{self.stage}",
            )
        plain = recipes.from_yaml(folder.config_yaml(), source=str(folder.path / "config.yaml"))
        if not self.overrides:
            return plain
        given = {item.partition("=")[0] for item in self.overrides}
        if not given <= FREE_KEYS:
            raise UsageError(
                f"a run goes on with its own config, and {', '.join(sorted(given - FREE_KEYS))} would make it another",
                hint=f"leave the keys out, or start a new run; free are {', '.join(sorted(FREE_KEYS))}",
            )
        return recipes.with_values(plain, self.overrides)

    def _root(self, before: RunFolder | None) -> Path:
        if self.project is None and before is not None and "project" in before.record.extra:
            return project_root(Path(before.record.extra["project"]))
        return project_root(self.project)

    def _bundle(self, config: TrainConfig, root: Path) -> Bundle | None:
        from harnessctl.train.order import HARNESSED

        return open_bundle(config.bundle, root)[0] if self.stage in HARNESSED or config.bundle is not None else None

    def _as_begun(self, config: TrainConfig, before: RunFolder) -> TrainConfig:
        """The config with the start that the run to resume began from, whatever has been trained since."""
        start = before.record.extra.get("start")
        return config if start is None else msgspec.structs.replace(config, start=start)


def _settled(value: Any) -> Any:
    """`value` with what lies in the newest run of a job named by that run's own folder: the new run is going to be the newest."""
    if isinstance(value, dict):
        return {key: _settled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if (
        isinstance(value, str)
        and any(part.startswith("latest-") for part in Path(value).parts)
        and Path(value).exists()
    ):
        return str(Path(value).resolve())
    return value


def _root_of(project: Path | None) -> Path | None:
    try:
        return project_root(project)
    except UsageError:
        return None
