"""Case: what a judge is asked to grade: the viewers' messages, what the host was shown, what it looked up, what it said.

What always holds: gold is in a case only where the panel sees it; a case holds nothing that differs between two runs in
which the same was asked and said (no times), so that it can be the key of a cache.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.records.calibration import CalibrationItem, LabelledCall
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Gold
from harnessctl.records.trajectory import ToolCall, Trajectory

#: The name under which a judge's prompt finds what is graded.
INPUT = "judged"


class Case(msgspec.Struct, kw_only=True, frozen=True):
    """One item. `request` is the viewers' own; `context` what the host's prompt was made of; `calls` its tools' results."""

    id: str
    request: CommentInput
    context: dict[str, Any]
    reply: str
    route: str
    stop: str
    calls: list[dict[str, Any]]
    gold: dict[str, Any] | None = None
    world: str | None = None

    def input(self, fault: str | None = None) -> dict[str, Any]:
        """What the judge's prompt finds under `judged`; `fault` says what was wrong with the answer before."""
        graded: dict[str, Any] = {
            "id": self.id,
            "reply": self.reply,
            "route": self.route,
            "stop": self.stop,
            "calls": self.calls,
        }
        return graded | {"gold": self.gold, "fault": fault}

    def asked(self, name: str, fault: str | None = None) -> CommentInput:
        """The request to the judge, with the id `name`."""
        context = {**self.context, INPUT: self.input(fault)}
        return msgspec.structs.replace(self.request, id=name, session=None, context=context)


def case_of(trajectory: Trajectory, *, gold: Gold | None = None) -> Case:
    """The case of a trajectory. msgspec.ValidationError when its request is none."""
    return Case(
        id=trajectory.id,
        request=msgspec.convert(trajectory.request, CommentInput),
        context=trajectory.context,
        reply=trajectory.reply,
        route=trajectory.route,
        stop=trajectory.stop,
        calls=[_call(call) for call in trajectory.tools],
        gold=None if gold is None else msgspec.to_builtins(gold),
        world=trajectory.world,
    )


def labelled_case(item: CalibrationItem) -> Case | None:
    """The case of a calibration item; None where it holds none itself."""
    if item.request is None:
        return None
    return Case(
        id=item.id,
        request=item.request,
        context={**item.context},
        reply=item.reply,
        route=item.route,
        stop=item.stop,
        calls=[_call(call) for call in item.calls],
        world=item.world,
    )


def _call(call: ToolCall | LabelledCall) -> dict[str, Any]:
    """A call and what came of it, without its times."""
    fields = ("name", "arguments", "status", "result", "error")
    return {name: value for name in fields if (value := getattr(call, name)) is not None}
