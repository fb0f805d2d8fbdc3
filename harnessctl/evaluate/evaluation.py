"""Evaluation: a suite's items through a policy into a run folder, and the report of them [4].

What always holds: an item that is on disk is not carried out again; a policy that answers at once gives the same bytes
however many workers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import UsageError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.files import EvalFiles
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.judging.run_scores import JudgedRun
from harnessctl.evaluate.outcome import Outcome
from harnessctl.evaluate.report import Report, markdown, report_of
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.suites import suite_named
from harnessctl.evaluate.workers import outcomes
from harnessctl.runs import RunFolder
from harnessctl.storage import write_atomic

REPORT = "report.md"


class Evaluated(msgspec.Struct, kw_only=True):
    """What an evaluation came to. `report` is null when it was broken off."""

    run: str
    status: str
    counts: dict[str, int]
    report: Report | None = None
    judging: JudgedRun | None = None

    @property
    def code(self) -> int:
        """The exit code: 130 when it was interrupted, 1 when not a single item has a score (the model never answered)."""
        if self.status == "interrupted":
            return 130
        return 1 if self.report is not None and self.report.total.items and not self.report.total.scored else 0


def size_of(job: Job) -> int:
    """How many items the config asks for."""
    size = job.config.n or suite_named(job.config.suite).size
    return min(size, job.config.limit or size)


def check(job: Job) -> None:
    """UsageError when keys do not go together."""
    config = job.config
    suite_named(config.suite)
    if config.policy == "local" and config.workers > 1:
        raise UsageError("policy=local answers one request at a time", hint="leave workers at 1")
    if config.policy == "scripted" and config.workers > 1 and config.script is not None:
        from harnessctl.runtime.models.scripted import Conversation, read_script

        if not all(isinstance(line, Conversation) for line in read_script(Path(config.script))):
            raise UsageError(
                f"{config.script} holds replies in order, and which worker answers what is not settled",
                hint="workers=1, or write conversations: `harnessctl docs running`",
            )
    if config.flaw is not None and config.policy != "oracle":
        raise UsageError(f"flaw={config.flaw} degrades the oracle; policy is {config.policy}", hint="policy=oracle")
    if config.flaw is not None:
        from harnessctl.simulate.flaws import flaw

        flaw(config.flaw)


def evaluate(
    job: Job, folder: RunFolder, setting: Setting, *, on_done: Callable[[Outcome], None] | None = None
) -> Report:
    """Carry out what is not done yet, in the run's folder; the report is written beside the records.

    HarnessctlError says what stopped it; what was done until then is on disk.
    """
    with EvalFiles(folder.path) as files:
        for outcome in outcomes(job, numbers_left(job, setting, files.done), setting):
            files.write(outcome)
            if on_done is not None:
                on_done(outcome)
    return write_report(folder, job.config)


def numbers_left(job: Job, setting: Setting, done: Sequence[str]) -> Sequence[int]:
    """The items that have no score yet. UsageError when the run has items that these settings do not give."""
    numbers = range(size_of(job))
    unseen = set(done)
    left: list[int] = []
    for number in numbers:
        if not unseen:  # what follows is not looked at: items are drawn to be told apart, and there may be millions
            return [*left, *numbers[number:]] if left else numbers[number:]
        name = setting.scenario_id(number)
        if name in unseen:
            unseen.remove(name)
        else:
            left.append(number)
    if unseen:
        raise UsageError(f"the run has items that are not of this suite: {', '.join(sorted(unseen)[:5])}")
    return left


def write_report(folder: RunFolder, config: EvalConfig) -> Report:
    """The report of what the folder holds, written to report.md."""
    suite = suite_named(config.suite)
    report = report_of(
        folder.path,
        suite=suite.name,
        title=suite.title,
        policy=folder.record.policy or config.policy,
        harness=folder.record.harness or "",
    )
    write_atomic(folder.path / REPORT, markdown(report).encode())
    return report


def counts_of(report: Report) -> dict[str, int]:
    """What run.json counts."""
    extra: dict[str, Any] = {"items": report.total.items, "scored": report.total.scored}
    return {**extra, **report.stops}
