"""prompt-robust: scenarios with further instructions in the prompt; T3 of the paper [4.1, C.3, Table 3]."""

from __future__ import annotations

from harnessctl.evaluate.building.built import built_items
from harnessctl.evaluate.building.making import Maker
from harnessctl.evaluate.building.prompt_items import NAME, PromptItems
from harnessctl.evaluate.items import Items
from harnessctl.evaluate.metrics import PROMPT_COLUMNS
from harnessctl.evaluate.setting import Setting


class PromptRobust:
    """T3, the second part: 491 items by default."""

    name = NAME
    title = "Prompt Robustness (T3)"
    size = 491
    columns = PROMPT_COLUMNS

    def maker(self, setting: Setting) -> Maker:
        """What makes the items of the seed."""
        return PromptItems(setting)

    def items(self, setting: Setting) -> Items:
        """The items of the seed, built and checked."""
        return built_items(setting, self)


SET = PromptRobust()
