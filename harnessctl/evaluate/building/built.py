"""Built items: a set that was built, or read from its file, as items to be answered.

What always holds: an item is what its record says under the harness that is evaluated: under the one that it was built for
byte for byte, under another one (a later version) with the same changes made to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec.structs import replace

from harnessctl.bundle.files import Bundle
from harnessctl.bundle.set_item import SetItem
from harnessctl.bundle.shared import SharedDigest
from harnessctl.errors import BundleError, UsageError
from harnessctl.evaluate.building.making import Maker, build
from harnessctl.evaluate.building.probe import changed_bundle
from harnessctl.evaluate.items import Item, Items, ItemSet
from harnessctl.evaluate.setting import Setting
from harnessctl.simulate.situations import EDITED


@runtime_checkable
class BuiltSet(ItemSet, Protocol):
    """A set whose items are built and checked before they are asked."""

    def maker(self, setting: Setting) -> Maker:
        """What makes its items."""
        ...


def built_items(setting: Setting, item_set: BuiltSet) -> Items:
    """The items of a set that are asked for, built once for a setting. UsageError when the world does not give so many."""
    found = setting.built.get(item_set.name)
    n = setting.size(item_set)
    if found is None or len(found.items) < n:
        found = setting.built[item_set.name] = build(lambda: item_set.maker(setting), n, setting.on_built)
    return SetItems(setting, found.items)


class SetItems:
    """Items of records. With an edited harness in the setting each is there twice: under the harness, then under the
    edited one."""

    def __init__(self, setting: Setting, items: Sequence[SetItem]) -> None:
        self._setting = setting
        self._items = items
        self._shared = SharedDigest(setting.bundle.state)
        self._arms = 1 if setting.edited is None else 2
        if setting.edited is not None and any(item.variation is not None for item in items):
            raise UsageError(
                f"items of {items[0].set} change the harness themselves, and cannot be held against another one",
                hint="edit=NAME is for edit-compliance and edit-compliance-held-out",
            )
        self.keep = self._arms if all(item.variation is None for item in items) else 0

        first = items[0].variation
        if first is not None and first.parent != setting.bundle.digest:
            self.item(0)  # a harness that its changes do not fit is refused before there is a run

    def id(self, number: int) -> str:
        """The id of item `number`'s request."""
        place, arm = divmod(number, self._arms)
        return self._items[place].scenario.request.id + (EDITED if arm else "")

    def item(self, number: int) -> Item:
        """Item `number`. UsageError where its changes do not fit the harness."""
        place, arm = divmod(number, self._arms)
        record = self._items[place]
        if self._setting.edited is not None:
            return _of_arm(number, record, self._setting.edited if arm else self._setting.bundle, is_after=bool(arm))
        if record.variation is None:
            return Item(number, record.scenario, self._setting.bundle)
        try:
            bundle = changed_bundle(self._setting.bundle, record.variation.changes, self._shared)
        except BundleError as error:
            raise UsageError(
                f"item {record.scenario.id} of the set does not fit the harness {self._setting.bundle.name} "
                f"{self._setting.bundle.digest[:12]}: {error.message}",
                hint="build the set again, or evaluate the bundle that it was built for",
            ) from error
        variation = replace(record.variation, parent=self._setting.bundle.digest, variant=bundle.digest)
        return Item(number, record.scenario, bundle, variation)


def _of_arm(number: int, record: SetItem, bundle: Bundle, *, is_after: bool) -> Item:
    scenario = record.scenario
    assert scenario.task is not None
    task = replace(scenario.task, arm="after" if is_after else "before")
    if not is_after:
        return Item(number, replace(scenario, task=task), bundle)
    request = replace(scenario.request, id=scenario.request.id + EDITED)
    return Item(number, replace(scenario, id=scenario.id + EDITED, request=request, task=task), bundle)
