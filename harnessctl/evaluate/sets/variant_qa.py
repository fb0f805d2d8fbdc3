"""variant-qa: the scenarios of live-qa, each under a variant of the harness; T2 of the paper [4.1, Table 2].

Item `number` has variant `number` of the seed's stream, made for what its gold needs, so that the pair is fair. With
`variants=K` there are K variants, made for nobody: an item has the first that is fair to it, counted from `number` on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnessctl.augment.laws.pairing import unfit
from harnessctl.errors import HarnessctlError
from harnessctl.evaluate.items import Item, Items
from harnessctl.evaluate.metrics import COLUMNS
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Needs, Scenario

if TYPE_CHECKING:
    from harnessctl.augment.variants import Variant


class VariantQa:
    """T2: 978 items by default."""

    name = "variant-qa"
    title = "Harness-Variant QA (T2)"
    size = 978
    columns = COLUMNS

    def items(self, setting: Setting) -> Items:
        """Scenario `number` with its variant. What is wrong with the envelope is said here, not by the first variant."""
        setting.check_envelope()
        return _Items(setting)


class _Items:
    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._shared = setting.config.variants
        self._kept: dict[int, Variant] = {}
        self.keep = self._shared or 0

    def id(self, number: int) -> str:
        return self._setting.scenario_id(number)

    def item(self, number: int) -> Item:
        scenario = self._setting.scenario(number)
        variant = self._variant(number, scenario)
        return Item(number, scenario, variant.bundle, variant.variation)

    def _variant(self, number: int, scenario: Scenario) -> Variant:
        needs = scenario.gold.needs if scenario.gold is not None else Needs()
        if self._shared is None:
            return self._setting.variant(number, needs)
        parent = self._setting.bundle.state
        for step in range(self._shared):
            variant = self._numbered((number + step) % self._shared)
            if not unfit(needs, parent, variant.variation):
                return variant
        raise HarnessctlError(
            f"none of the {self._shared} variants is fair to scenario {scenario.id}", hint="raise variants="
        )

    def _numbered(self, number: int) -> Variant:
        if number not in self._kept:
            self._kept[number] = self._setting.variant(number, None)
        return self._kept[number]


SET = VariantQa()
