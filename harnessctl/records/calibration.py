"""Calibration item: a reply with labels of people, one line of JSON Lines, which judges are held against [B.4, C.1].

What always holds: `source` says who labelled and `role` what the set may be used for; both go into every report.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Route, StopReason

FORMAT = "harnessctl/calibration.v1"

#: The source of labels that the simulator made; any other name is the team's own.
CONSTRUCTION = "construction"


class Label(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """What one annotator says; null: they gave no score."""

    accuracy: Literal[0, 1] | None = None
    effectiveness: Annotated[float, Meta(ge=0, le=1)] | None = None
    annotator: str = ""
    reason: str = ""


class LabelledCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A call of the host and its result, as the annotators saw it."""

    name: str
    arguments: dict[str, Any] = {}
    status: str = "ok"
    result: Any = None
    error: str | None = None


class CalibrationItem(
    msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag=FORMAT
):
    """`request`, `context`, `calls`, `reply`, `route`, `stop` are what is judged; without `request` they are those of the
    item of this id in the run that the labels are of. `world` is the digest of the tables that the reply was made with.
    """

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    labels: Annotated[list[Label], Meta(min_length=1)]
    source: Annotated[str, Meta(min_length=1)]
    role: Literal["dev", "test"]
    request: CommentInput | None = None
    reply: str = ""
    route: Route = "public"
    stop: StopReason = "replied"
    context: dict[str, Any] = {}
    calls: list[LabelledCall] = []
    world: str | None = None
    intent: str = ""
    family: str = ""
    language: str = ""
