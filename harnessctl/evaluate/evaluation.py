"""Evaluation: a suite's items through a policy into a run folder, and the report of them [4].

What always holds: an item that is on disk is not carried out again; a policy that answers at once gives the same bytes
however many workers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import HarnessctlError, UsageError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.files import EvalFiles
from harnessctl.evaluate.gate import Gated
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.judging.run_scores import JudgedRun
from harnessctl.evaluate.metrics import HEADINGS
from harnessctl.evaluate.outcome import Outcome
from harnessctl.evaluate.repeats import repeated_id
from harnessctl.evaluate.report import Report, markdown, report_of
from harnessctl.evaluate.sets import item_sets, set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.workers import outcomes
from harnessctl.runs import RunFolder
from harnessctl.storage import write_atomic

REPORT = "report.md"
GATE_MISSED = 3
#: How a request ends that no model answered.
UNANSWERED = "model_error"


class Evaluated(msgspec.Struct, kw_only=True):
    """What an evaluation came to. `report` is null when it was broken off, `gate` where the suite has none."""

    run: str
    status: str
    counts: dict[str, int]
    report: Report | None = None
    gate: Gated | None = None
    judging: JudgedRun | None = None

    @property
    def code(self) -> int:
        """The exit code: 130 when it was interrupted, 1 when not a single item has a score (the model never answered), 3
        when the suite's gate was missed."""
        if self.status == "interrupted":
            return 130
        if self.report is not None and self.report.total.items and not self.report.total.scored:
            return 1
        return GATE_MISSED if self.gate is not None and not self.gate.passed else 0


def size_of(job: Job) -> int:
    """How many answers the config asks for: every repeat of every item."""
    return job.size * job.config.repeats


def check(job: Job) -> None:
    """UsageError when keys do not go together."""
    config = job.config
    asked = set_named(config.items)
    if config.edit is not None and "NAT" not in asked.columns:
        raise UsageError(
            f"edit={config.edit} holds two harnesses against each other by how natural replies are, which {asked.name} "
            "does not ask",
            hint="edit is for edit-compliance and edit-compliance-held-out",
        )
    if job.edited is not None and job.edited.digest == job.bundle.digest:
        raise UsageError(f"edit={config.edit} is the harness itself", hint="give the harness with the edit in it")
    if unknown := [name for name in config.metrics if name not in HEADINGS]:
        raise UsageError(f"no metric {unknown[0]!r}", hint=f"metrics: {', '.join(HEADINGS)}")
    if config.cache and config.is_at_once:
        raise UsageError(
            f"cache=true keeps answers that take time; policy={config.policy} answers at once", hint="cache=false"
        )
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
    job: Job,
    folder: RunFolder,
    setting: Setting,
    *,
    on_done: Callable[[Outcome], None] | None = None,
    on_retry: Callable[[Outcome], None] | None = None,
) -> Report:
    """Carry out what is not done yet, in the run's folder; the report is written beside the records.

    What no model answered is asked again up to `retries` times once all else is done, and then recorded as it ended.
    HarnessctlError says what stopped it (with `fail_on_error` the first item without an answer); what was done until then
    is on disk.
    """
    with EvalFiles(folder.path) as files:
        left = places_left(job, setting, files.done)
        for attempt in range(job.config.retries + 1):
            unanswered: list[int] = []
            for outcome in outcomes(job, left, setting):
                if outcome.stop == UNANSWERED and attempt < job.config.retries:
                    unanswered.append(outcome.repeat * job.size + outcome.number)
                    if on_retry is not None:
                        on_retry(outcome)
                    continue
                files.write(outcome)
                if on_done is not None:
                    on_done(outcome)
                if outcome.stop == UNANSWERED and job.config.fail_on_error:
                    raise HarnessctlError(f"{outcome.id} has no answer: {outcome.error or 'no cause is recorded'}")
            left = sorted(unanswered)
    return write_report(folder, job.config)


def places_left(job: Job, setting: Setting, done: Sequence[str]) -> Sequence[int]:
    """The places that have no score yet: first those of every item, then those of every item's second answer, and so on.
    UsageError when the run has items that these settings do not give."""
    places, size = range(size_of(job)), job.size
    unseen = set(done)
    items = set_named(job.config.items).items(setting) if unseen else None
    left: list[int] = []
    for place in places:
        # What follows is not looked at: items are drawn to be told apart, and there may be millions.
        if not unseen or items is None:
            return [*left, *places[place:]] if left else places[place:]
        name = repeated_id(items.id(place % size), place // size)
        if name in unseen:
            unseen.remove(name)
        else:
            left.append(place)
    if unseen:
        raise UsageError(f"the run has items that are not of this suite: {', '.join(sorted(unseen)[:5])}")
    return left


def write_report(folder: RunFolder, config: EvalConfig) -> Report:
    """The report of what the folder holds, written to report.md."""
    # The file that a set was read from may be gone by now.
    asked = item_sets().get(folder.record.extra.get("asked", "")) or set_named(config.items)
    report = report_of(
        folder.path,
        suite=config.suite,
        title=asked.title if config.suite == asked.name else config.suite,
        policy=folder.record.policy or config.policy,
        harness=folder.record.harness or "",
        price=config.model.price,
        columns={name: HEADINGS[name] for name in config.metrics} or asked.columns,
    )
    write_atomic(folder.path / REPORT, markdown(report).encode())
    return report


def counts_of(report: Report) -> dict[str, int]:
    """What run.json counts."""
    extra: dict[str, Any] = {"items": report.total.items, "scored": report.total.scored}
    return {**extra, **report.stops}
