"""Our own trajectories as scenarios: the request as it was asked, and what was answered."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Logged, LoggedCall, Scenario
from harnessctl.records.trajectory import FORMAT, Trajectory
from harnessctl.simulate.imports.fields import FieldError
from harnessctl.simulate.language import language_of


class TrajectoryReader:
    """Reads trajectories; `harness` replaces the name of the one that served them."""

    def __init__(self, harness: str | None) -> None:
        self._harness = harness

    def scenario(self, item: Any, place: str, number: int) -> Scenario | None:
        """The scenario of one trajectory; None for one that was cancelled. FieldError says why there is none."""
        del number
        found = item.get("format") if isinstance(item, dict) else None
        if found != FORMAT:
            raise FieldError(
                f"not a trajectory: format {found!r}; allowed {FORMAT} (another log needs --mapping FILE)"
                if found is not None
                else "not a trajectory; another log needs --mapping FILE"
            )
        try:
            trajectory = msgspec.convert(item, Trajectory)
            request = msgspec.convert(trajectory.request, CommentInput)
        except msgspec.ValidationError as error:
            raise FieldError(f"not a trajectory: {error}") from error
        if (request.text is None) == (request.messages is None):
            raise FieldError("a request has `text` or `messages`, exactly one of them")
        if trajectory.stop == "cancelled":
            return None
        logged = Logged(
            reply=trajectory.reply,
            skills=list(dict.fromkeys(trajectory.skills)),
            tools=[
                LoggedCall(tool=call.name, arguments=call.arguments, status=call.status)
                for call in trajectory.tools
                if not (isinstance(call.result, dict) and "skill" in call.result and "loaded" in call.result)
            ],
            stop=trajectory.stop,
            route=trajectory.route,
            bundle=trajectory.bundle,
        )
        return Scenario(
            id=trajectory.id,
            request=request,
            harness=self._harness or trajectory.harness,
            intent="unknown",
            family="log",
            language=language_of("\n".join(message.text for message in request.viewer_messages())),
            world=trajectory.world,
            source=place,
            logged=logged,
        )
