"""The work behind `rescore RUN judge=ROLE`: roles, panel, progress, tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl import recipes
from harnessctl.assembly import open_world_of
from harnessctl.cli import output
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import compiled
from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.judging.panel import Jury, check_models
from harnessctl.evaluate.judging.roles import check_policy, judge_role, load_roles
from harnessctl.evaluate.judging.run_scores import JudgedRun, judge_run
from harnessctl.evaluate.judging.tables import markdown, panel_lines, run_tables
from harnessctl.records.vote import Vote
from harnessctl.runs import RunFolder
from harnessctl.storage import write_atomic

REPORT = "judging.md"
#: Without a terminal, progress has a line at most so often.
QUIET_S = 2.0

RoleName = Literal["panel", "reward", "rejection"]


class RescoreConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the job `rescore`; recipes/rescore/default.yaml says what each key means."""

    judge: RoleName | None = None
    workers: Annotated[int, Meta(ge=1, le=256)] = 8
    tries: Annotated[int, Meta(ge=1, le=20)] = 3


class Known(msgspec.Struct):
    """What run.json tells a scorer of the harness, and where the project is."""

    writes: list[str] = []
    loader: str = "load_skill"
    project: str | None = None


def rescore_config(root: Path | None, overrides: Sequence[str]) -> RescoreConfig:
    """The keys of `rescore`, typed. UsageError for a key that is wrong."""
    return recipes.typed(recipes.compose(root, "rescore", overrides), RescoreConfig, job="rescore")


def known_of(folder: RunFolder) -> Known:
    """What the run's record tells. RecordError where it cannot be read."""
    try:
        return msgspec.convert(folder.record.extra, Known)
    except msgspec.ValidationError as error:
        raise RecordError(f"{folder.path / 'run.json'}: extra: {error}") from error


def open_jury(root: Path, role: str, *, policy: str | None = None) -> Jury:
    """The jury of a role of the project, to judge `policy` (as run.json has it, `openai:NAME`).

    UsageError and FaultsError say what is wrong with the roles, the judge or its models; nothing is asked.
    """
    roles = load_roles(root)
    kind, _, model = (policy or "").partition(":")
    if kind in ("openai", "local") and model:
        check_policy(roles, role, model)
    jury = Jury(role, roles, compiled(root, judge_role(roles, role).judge))
    check_models(root, jury)
    return jury


def judge_folder(folder: RunFolder, root: Path, config: RescoreConfig) -> JudgedRun:
    """Judge a run, replace its scores, write judging.md. The caller holds the run."""
    assert config.judge is not None
    jury = open_jury(root, config.judge, policy=folder.record.policy)
    known = known_of(folder)
    world = open_world_of(root, jury.bundle, None)
    progress: Progress | None = None

    def on_begin(total: int) -> None:
        nonlocal progress
        progress = Progress(jury.scorer, total=total, quiet_s=QUIET_S)
        progress.__enter__()

    def on_vote(vote: Vote) -> None:
        if progress is not None:
            with suppress(OSError):  # nobody may be reading our talk any more; the work goes on
                progress.advance(f"{vote.id}: {vote.voter} {said(vote)}")

    try:
        with ended_by_signals(), stdout_kept_for_data():
            done = asyncio.run(
                judge_run(
                    folder.path,
                    root,
                    jury,
                    world=world,
                    workers=config.workers,
                    tries=config.tries,
                    writes=known.writes,
                    loader=known.loader,
                    on_vote=on_vote,
                    on_begin=on_begin,
                )
            )
    finally:
        if progress is not None:
            progress.__exit__(None, None, None)
        if world is not None:
            world.close()
    title = f"Judged by {jury.scorer}: {folder.record.policy or ''} under {folder.record.harness or ''}"
    text = markdown(title, panel_lines(done.panel), run_tables(done.panel, done.rules))
    write_atomic(folder.path / REPORT, text.encode())
    return done


def said(vote: Vote) -> str:
    """What a vote says, for a line of progress."""
    if vote.cause is not None:
        return f"no score ({vote.cause})"
    return f"Acc {vote.accuracy:g}, Eff {vote.effectiveness:g}"


def show_judging(done: JudgedRun) -> None:
    """The tables of a judged run, on stdout; what is to be said of it, on stderr."""
    for table in run_tables(done.panel, done.rules):
        output.data(table.title)  # a title of the table's own would wrap at the table's width
        output.table(table.head, table.rows)
    for line in panel_lines(done.panel):
        output.talk(line)


def root_for(project: Path | None, known: Known) -> Path:
    """The project whose judges are asked: `--project`, or the one that the run was made in."""
    from harnessctl.cli.project import project_root

    if project is None and known.project is not None and Path(known.project).is_dir():
        return Path(known.project)
    try:
        return project_root(project)
    except UsageError as error:
        raise UsageError(f"a judge is a harness of a project: {error.message}", hint="give --project DIR") from error
