"""tool-robust: scenarios in which a tool is due, with distractor tools beside it; T3 of the paper [4.1, C.3, Table 3]."""

from __future__ import annotations

from harnessctl.evaluate.building.built import built_items
from harnessctl.evaluate.building.making import Maker
from harnessctl.evaluate.building.tool_items import NAME, ToolItems
from harnessctl.evaluate.items import Items
from harnessctl.evaluate.metrics import TOOL_COLUMNS
from harnessctl.evaluate.setting import Setting


class ToolRobust:
    """T3, the first part: 1,532 items by default."""

    name = NAME
    title = "Tool Robustness (T3)"
    size = 1532
    columns = TOOL_COLUMNS

    def maker(self, setting: Setting) -> Maker:
        """What makes the items of the seed."""
        return ToolItems(setting)

    def items(self, setting: Setting) -> Items:
        """The items of the seed, built and checked."""
        return built_items(setting, self)


SET = ToolRobust()
