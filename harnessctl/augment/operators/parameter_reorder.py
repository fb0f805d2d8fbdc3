"""parameter-reorder: a tool's parameters shown in another order. Beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import reordered
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState


class ParameterReorder:
    """Targets: tools of two parameters or more."""

    name = "parameter-reorder"
    dimension: Dimension = "tool-definition"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(_parameters(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        order = reordered(_parameters(draft.state)[target], stream)
        if order is None:
            return False
        draft.changes.parameter_order[target] = order
        return True


@once
def _parameters(state: HarnessState) -> dict[str, list[str]]:
    """The parameters of each tool that has several: as the parent shows them, else by name, since a bundle that is read
    from its file has them in another order than one just compiled."""
    shown = state.surface.parameter_order
    named = {tool.name: sorted(tool.parameters.get("properties", {})) for tool in state.tools}
    return {tool: list(shown.get(tool, names)) for tool, names in named.items() if len(names) > 1}


OPERATOR = ParameterReorder()
