"""Calibration: a judge role held against labels: agreement, kappa, clusters, and the curve over judges [B.4, Figure 9].

What always holds: every report says who labelled (`sources`) and what the set may be used for (`roles`); runs stand side
by side on one curve only where they judged the very same set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.judging.aggregation import majority, median
from harnessctl.evaluate.judging.agreement import STEPS, Agreement, agreement
from harnessctl.evaluate.judging.clusters import Cluster, Disagreement, clusters, disagreements
from harnessctl.evaluate.judging.comparing import Grades, PanelReport, panel_report
from harnessctl.evaluate.judging.labels import LabelSet
from harnessctl.evaluate.judging.panel import Jury, open_panel
from harnessctl.evaluate.judging.votes_files import write_votes
from harnessctl.evaluate.judging.voting import collect
from harnessctl.records.calibration import CONSTRUCTION
from harnessctl.records.vote import Vote
from harnessctl.runtime.protocols import Model
from harnessctl.simulate.world import LiveWorld
from harnessctl.storage import read_bytes, write_atomic

REPORT = "calibration.json"
FORMAT = "harnessctl/judge-calibration.v1"


class CurvePoint(msgspec.Struct, kw_only=True):
    """One judge on the curve: agreement with the labels as shares, kappas, and the share of items with a verdict."""

    run: str
    scorer: str
    judge: str
    judge_digest: str
    accuracy: float | None
    effectiveness: float | None
    accuracy_kappa: float | None
    effectiveness_kappa: float | None
    coverage: float


class Calibration(msgspec.Struct, kw_only=True, tag_field="format", tag=FORMAT):
    """What a calibration came to. In tables and agreements the label comes first.

    `items` were judged; `duplicates`, `absent` were passed over; `split` had annotators without a majority. `annotators` is
    how often two annotators of an item agree, null where no item has two. `voters` holds each voter against the labels.
    """

    set_digest: str
    sources: dict[str, int]
    roles: dict[str, int]
    items: int
    duplicates: list[str]
    absent: list[str]
    split: dict[str, list[str]]
    annotators: dict[str, float | None]
    panel: PanelReport
    agreement: dict[str, Agreement]
    voters: dict[str, dict[str, Agreement]]
    clusters: list[Cluster]
    disagreements: list[Disagreement]
    curve: list[CurvePoint] = []

    @property
    def is_human(self) -> bool:
        """Whether no label was made by the simulator."""
        return CONSTRUCTION not in self.sources


async def calibrate(
    folder: Path,
    root: Path,
    jury: Jury,
    labels: LabelSet,
    *,
    world: LiveWorld | None,
    workers: int,
    tries: int = 3,
    models: dict[str, Model] | None = None,
    on_vote: Callable[[Vote], None] | None = None,
) -> Calibration:
    """Judge every labelled item and hold the votes against the labels; writes votes, judgements and calibration.json.

    UsageError when no item can be judged, when labels were made with other tables than `world` has now, or when the panel
    sees gold: labels are not gold.
    """
    if not labels.items:
        raise UsageError(
            f"no labelled item can be judged: {len(labels.absent)} are nowhere to be found",
            hint="give replies=RUN, the run folder that the labels are of, or lines with `request` and `reply`",
        )
    if jury.sees_gold:
        raise UsageError(f"the {jury.role} sees gold, and labelled items have none", hint="write sees: reply")
    for each in labels.items:
        if world is not None and each.case.world is not None and each.case.world != world.digest:
            raise UsageError(
                f"{each.item.id} was answered with tables {each.case.world[:12]}, and {world.name} is "
                f"{world.digest[:12]} now",
                hint="a judge looks facts up: calibrate it with the tables that the replies were made with",
            )
    async with open_panel(root, jury, world=world, tries=tries, models=models) as panel:
        votes = await collect(panel, [each.case for each in labels.items], workers=workers, on_vote=on_vote)
        write_votes(folder, panel, votes)
    verdicts: list[Grades] = [
        {
            "accuracy": majority([vote.accuracy for vote in of_item]),
            "effectiveness": median([vote.effectiveness for vote in of_item]),
        }
        for of_item in votes
    ]
    found = disagreements(labels.items, votes, verdicts)
    return Calibration(
        set_digest=labels.digest,
        sources=labels.sources,
        roles=labels.roles,
        items=len(labels.items),
        duplicates=labels.duplicates,
        absent=labels.absent,
        split=labels.split,
        annotators={name: same / pairs if pairs else None for name, (same, pairs) in labels.pairwise.items()},
        panel=panel_report(jury, votes, verdicts),
        agreement=_held(labels, verdicts),
        voters={
            name: _held(labels, [{step: getattr(of_item[n], step) for step in STEPS} for of_item in votes])
            for n, name in enumerate(jury.voters)
        },
        clusters=clusters(found),
        disagreements=found,
    )


def _held(labels: LabelSet, grades: Sequence[Grades]) -> dict[str, Agreement]:
    """Grades against the labels, over the items whose annotators came to one."""
    return {
        name: agreement(
            (
                (each.reference[name], given[name])
                for each, given in zip(labels.items, grades, strict=True)
                if each.reference[name] is not None
            ),
            name,
        )
        for name in STEPS
    }


def point(run: str, found: Calibration) -> CurvePoint:
    """A calibration as a point of the curve."""
    accuracy, effectiveness = found.agreement["accuracy"], found.agreement["effectiveness"]
    return CurvePoint(
        run=run,
        scorer=found.panel.scorer,
        judge=found.panel.judge,
        judge_digest=found.panel.judge_digest,
        accuracy=accuracy.share,
        effectiveness=effectiveness.share,
        accuracy_kappa=accuracy.kappa,
        effectiveness_kappa=effectiveness.kappa,
        coverage=found.panel.coverage,
    )


def read_calibration(folder: Path) -> Calibration:
    """The calibration of a run. RecordError when there is none or its format is another."""
    path = folder / REPORT
    if not path.is_file():
        raise RecordError(
            f"{folder}: no {REPORT} there", hint="give run folders of `harnessctl eval judge-calibration`"
        )
    try:
        return msgspec.json.decode(read_bytes(path), type=Calibration)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: not of format {FORMAT}: {error}") from error


def curve(runs: Mapping[str, Calibration], set_digest: str) -> list[CurvePoint]:
    """The points of earlier runs, in the order given. UsageError for one that judged another set."""
    for run, found in runs.items():
        if found.set_digest != set_digest:
            raise UsageError(
                f"{run} judged another set ({found.set_digest[:12]}, here {set_digest[:12]}): "
                "its agreement cannot stand beside this one",
                hint="calibrate each judge on the same items and labels",
            )
    return [point(run, found) for run, found in runs.items()]


def write_calibration(folder: Path, found: Calibration) -> None:
    """Write calibration.json, atomically."""
    write_atomic(folder / REPORT, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
