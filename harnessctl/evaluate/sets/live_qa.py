"""live-qa: seeded scenarios of the world under the harness as it is; T1 of the paper [4.1, Table 2]."""

from __future__ import annotations

from harnessctl.evaluate.items import Item, Items
from harnessctl.evaluate.metrics import COLUMNS
from harnessctl.evaluate.setting import Setting


class LiveQa:
    """T1: 978 items by default."""

    name = "live-qa"
    title = "Live-Stream QA (T1)"
    size = 978
    columns = COLUMNS

    def items(self, setting: Setting) -> Items:
        """Scenario `number` of the seed's stream."""
        return _Items(setting)


class _Items:
    keep = 1

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def id(self, number: int) -> str:
        return self._setting.scenario_id(number)

    def item(self, number: int) -> Item:
        return Item(number, self._setting.scenario(number), self._setting.bundle)


SET = LiveQa()
