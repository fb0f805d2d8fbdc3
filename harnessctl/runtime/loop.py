"""Loops: `harness`, and `react`, the paper's baseline [4]: same model, tools and base prompt; no skills, no hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from harnessctl.bundle import Bundle, HarnessState
from harnessctl.bundle.state import Surface
from harnessctl.errors import UsageError

Loop = Literal["harness", "react"]


def loop_state(bundle: Bundle, loop: Loop = "harness", limits: Mapping[str, int | float] | None = None) -> HarnessState:
    """The state that `loop` runs: the bundle's own, or what the ReAct baseline leaves of it, with `limits` replaced.

    UsageError when a limit is not one of the harness's.
    """
    state = bundle.state
    unknown = sorted((limits or {}).keys() - state.limits.keys())
    if unknown:
        raise UsageError(
            f"no such limit: {', '.join(unknown)}; harness {bundle.name} has {', '.join(sorted(state.limits))}"
        )
    if limits:
        replaced = {name: msgspec.structs.replace(state.limits[name], value=value) for name, value in limits.items()}
        state = msgspec.structs.replace(state, limits=state.limits | replaced)
    return _react_state(state) if loop == "react" else state


def _react_state(state: HarnessState) -> HarnessState:
    """What is left of `state` without its skills, its hooks and the tool that loads skills.

    Limits, tools, prompt blocks (with `skills` empty), reply form and route stay.
    """
    return msgspec.structs.replace(
        state,
        skills=[],
        hooks=[],
        tools=[tool for tool in state.tools if (tool.run or {}).get("builtin") != "load_skill"],
        require_skill="none",
        session_keep=[part for part in state.session_keep if part != "skills"],
        surface=Surface(tools=state.surface.tools, parameters=state.surface.parameters),
    )
