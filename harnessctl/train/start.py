"""Start: the checkpoint that a training begins from.

What always holds: a stage begins by itself only from an earlier stage (base < sft < opd < rl < mtp-adapt) of the same
model, and a real training never from one that was made with debug=true. A person may say otherwise with `start`, and is
told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harnessctl.checkpoint.head import check_head
from harnessctl.checkpoint.policy import read_lineage, weights_digest
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.decode.catalog import is_known, locate
from harnessctl.errors import CheckpointError, HarnessctlError, UsageError
from harnessctl.records.lineage import Lineage
from harnessctl.records.run import Run
from harnessctl.runs import RunFolder
from harnessctl.train.config import TrainConfig
from harnessctl.train.order import CARRIERS, STAGES, stages_before

CHECKPOINT = "checkpoint"


@dataclass(slots=True, frozen=True)
class Start:
    """`path` is the folder; `lineage` null for a model that harnessctl did not make; `said` is for the person."""

    path: Path
    lineage: Lineage | None
    said: str

    def digest(self) -> str:
        """The digest of the weights; those of a foreign model are read for it."""
        return (self.lineage.weights if self.lineage is not None else "") or weights_digest(self.path)


def find_start(root: Path, stage: str, config: TrainConfig) -> Start:
    """What `stage` begins from: `config.start`; else the newest finished run of an earlier stage; else `model.path`.

    UsageError when there is nothing to begin from.
    """
    if config.start is not None:
        path = _checkpoint_at(root, config.start).resolve()  # runs/latest-* moves on
        lineage = read_lineage(path)
        return Start(path, lineage, f"start: {path} ({_of(lineage, stage, is_debug=config.debug)})")
    for folder, run in _finished(root, stage, config):
        lineage = read_lineage(folder / CHECKPOINT)
        if lineage is not None and lineage.stage == run.job:
            return Start(folder / CHECKPOINT, lineage, f"start: the checkpoint of {run.job} in {folder}")
    if config.model.path is None:
        before = ", ".join(stages_before(stage))
        raise UsageError(
            f"there is nothing to begin from: no finished run of {before or 'an earlier stage'} of the model {config.model.name!r} in {root / 'runs'}",
            hint=f"harnessctl train {STAGES[max(0, STAGES.index(stage) - 1)]} model={config.model.name} first, or give start=FOLDER or model.path=FOLDER",
        )
    path = _model_at(root, config.model.path).resolve()  # a lineage names it, wherever that is read
    return Start(path, read_lineage(path), f"start: {path}, the model's own path")


def _finished(root: Path, stage: str, config: TrainConfig) -> Iterator[tuple[Path, Run]]:
    """The finished runs of earlier stages, newest first."""
    found: list[tuple[str, Path, Run]] = []
    for path in (root / "runs").glob("*/run.json"):
        if path.parent.is_symlink() or not (path.parent / CHECKPOINT).is_dir():
            continue
        try:
            run = RunFolder.open(path.parent).record
        except HarnessctlError:  # another version's, or damaged: not ours to begin from
            continue
        is_meant = run.job in stages_before(stage) and run.extra.get("model") == config.model.name
        if is_meant and run.status == "done" and (config.debug or not run.extra.get("debug")):
            found.append((run.finished or "", path.parent, run))
    for _, folder, run in sorted(found, key=lambda item: item[0], reverse=True):
        yield folder, run


def _checkpoint_at(root: Path, start: str) -> Path:
    """The folder that `start` means: a checkpoint, or a run folder that holds one."""
    path = _model_at(root, start)
    return path / CHECKPOINT if (path / CHECKPOINT).is_dir() else path


def _model_at(root: Path, named: str) -> Path:
    if is_known(named):
        return locate(named).path
    path = Path(named).expanduser()
    path = path if path.is_absolute() or path.exists() else root / path
    if (path / CHECKPOINT).is_dir():
        return path
    return locate(str(path)).path


def _of(lineage: Lineage | None, stage: str, *, is_debug: bool) -> str:
    if lineage is None:
        return "a model that harnessctl did not make"
    if lineage.recipe.get("debug") and not is_debug:
        return f"warning: a checkpoint of {lineage.stage} that was made with debug=true"
    if lineage.stage in STAGES and STAGES.index(lineage.stage) > STAGES.index(stage):
        return f"warning: a checkpoint of {lineage.stage}, which comes after {stage}"
    return f"a checkpoint of {lineage.stage}"


def check_start(start: Start, stage: str, template: str) -> list[str]:
    """What a person should know before `stage` goes on with a checkpoint under the chat template of this digest.

    CheckpointError when its tokenizer is not the one that its lineage speaks of, or when its config claims a draft head
    that is not whole and the stage is to carry one across: what is trained could not be saved.
    """
    found = _head_warnings(start.path, stage)
    known = start.lineage
    if known is None:
        return found
    if known.tokenizer is not None and (now := tokenizer_digest(start.path)) != known.tokenizer:
        raise CheckpointError(
            f"{start.path}: the tokenizer is {now[:12]}, and its lineage was trained with {known.tokenizer[:12]}",
            hint="put back the tokenizer.json of the base: the same ids would mean other words",
        )
    if known.template is not None and known.template != template:
        found.append(
            f"warning: {start.path} was trained with the chat template {known.template[:12]}, and this is {template[:12]}"
        )
    return found


def _head_warnings(path: Path, stage: str) -> list[str]:
    if stage == "mtp-adapt":  # it makes one anew, or looks by itself
        return []
    try:
        check_head(path)
    except CheckpointError as error:
        if stage in CARRIERS:
            raise
        return [f"warning: {error.message}"]
    return []
