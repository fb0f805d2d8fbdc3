"""Steps: the calls of a plan, the plan that they make, and why there may be none.

What always holds: names and arguments are canonical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from harnessctl.errors import HarnessctlError


@dataclass(slots=True, frozen=True)
class Step:
    """A call of a plan. `why` says where it comes from; `hook` is the one that demands a `prelude` call."""

    tool: str
    arguments: dict[str, Any]
    why: Literal["gold", "prelude", "skill"] = "gold"
    hook: str = ""

    @property
    def key(self) -> tuple[str, bytes]:
        """Equal for equal calls."""
        return call_key(self.tool, self.arguments)


def call_key(tool: str, arguments: Any) -> tuple[str, bytes]:
    """What makes two calls one and the same: the name and the arguments, whatever their order."""
    return tool, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)


@dataclass(slots=True, frozen=True)
class Plan:
    """`rounds` hold the steps in their order; calls of one round are made by one message. `replies` and `fallbacks` are the
    wordings that may be said, as far as texts decide it. `ends` is true where the last call ends the request. `lost` are
    tools whose answers a flaw does without.

    `min_rounds` is what the plan takes when no call fails, the reply counted.
    """

    scenario: str
    rounds: tuple[tuple[Step, ...], ...]
    replies: tuple[str, ...]
    fallbacks: tuple[str, ...]
    ends: bool
    min_rounds: int
    lost: tuple[str, ...] = ()

    @property
    def steps(self) -> list[Step]:
        """All calls in their order."""
        return [step for group in self.rounds for step in group]

    @property
    def skills(self) -> list[str]:
        """The skills that are loaded, in their order."""
        return [next(iter(step.arguments.values())) for step in self.steps if step.why == "skill"]


class PlanBlocked(HarnessctlError):
    """No plan can be made. `hook` is the hook that stands in the way, or the part of gold or of the harness (`gold`,
    `skill`, `tool`, `limit`); `call` the call it stands in the way of, none where that is the reply."""

    def __init__(self, hook: str, reason: str, *, call: Step | None = None) -> None:
        self.hook = hook
        self.reason = reason
        self.call = call
        before = f" before {call.tool}({_shown(call.arguments)})" if call is not None else ""
        super().__init__(f"{hook}{before}: {reason}")


def _shown(arguments: dict[str, Any]) -> str:
    text = orjson.dumps(arguments).decode()
    return text if len(text) <= 120 else text[:117] + "..."
