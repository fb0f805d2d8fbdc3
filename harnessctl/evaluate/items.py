"""Items: what a suite asks of a policy: a scenario, and the harness that it is answered under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.variation import Variation
from harnessctl.records.scenario import Scenario

if TYPE_CHECKING:
    from harnessctl.evaluate.setting import Setting


@dataclass(slots=True, frozen=True)
class Item:
    """One item. `variation` is null where `bundle` is the harness itself; `repeat` counts from 0 how often it was answered
    before."""

    number: int
    scenario: Scenario
    bundle: Bundle
    variation: Variation | None = None
    repeat: int = 0


class Items(Protocol):
    """The items of a set under one setting. Item `number` depends on the setting and the number alone.

    `keep` is how many bundles come up again, so that it pays to keep an agent for each.
    """

    keep: int

    def item(self, number: int) -> Item:
        """Item `number`, from 0. HarnessctlError says why there is none."""
        ...

    def id(self, number: int) -> str:
        """The id of item `number`'s request, without making the item."""
        ...


class ItemSet(Protocol):
    """One set of items: a file in `harnessctl/evaluate/sets/` whose `SET` fits this. `size` is the default of `n`; `columns`
    are the metrics of its tables in order, each with its heading."""

    name: str
    title: str
    size: int
    columns: Mapping[str, str]

    def items(self, setting: Setting) -> Items:
        """The items; what is wrong with the setting is a HarnessctlError."""
        ...
