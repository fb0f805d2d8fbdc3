"""Ground: what all plans of one harness rest on."""

from __future__ import annotations

from harnessctl.bundle.state import HarnessState
from harnessctl.runtime.surface import SurfaceView
from harnessctl.simulate.demands import Demands
from harnessctl.simulate.filling import Filling


class Ground:
    """A harness state, read for planning: its tools and skills by name, its limits, what its hooks demand."""

    def __init__(self, state: HarnessState, surface: SurfaceView | None = None) -> None:
        surface = surface or SurfaceView(state)
        self.state = state
        self.limits = surface.limits
        self.demands = Demands(state)
        self.tools = self.demands.tools
        self.skills = {skill.name: skill for skill in state.skills}
        self.load_skill = surface.load_skill.name if surface.load_skill is not None else None
        self.load_skill_argument = surface.load_skill_argument
        self.filling = Filling(self.tools.values(), self.load_skill)

    def is_alone(self, tool: str) -> bool:
        """Whether a call of this tool runs beside no other, after those before it."""
        spec = self.tools[tool]
        return spec.effect == "write" or spec.final is not None or tool == self.load_skill
