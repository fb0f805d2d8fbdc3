"""tool-reorder: the tools in another order, added ones among them. Beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import reordered
from harnessctl.augment.stream import Stream


class ToolReorder:
    """Target: `tools`, all of them."""

    name = "tool-reorder"
    dimension: Dimension = "tool-definition"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("tools",)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        names = draft.changes.tool_order or [tool.name for tool in (*draft.state.tools, *draft.changes.added_tools)]
        order = reordered(names, stream)
        if order is None:
            return False
        draft.changes.tool_order = order
        return True


OPERATOR = ToolReorder()
