"""edit-compliance-held-out: errors of naturalness before and after an edit of the harness: the 1,000 that are held out from making edits [5.6]."""

from __future__ import annotations

from harnessctl.evaluate.building.built import built_items
from harnessctl.evaluate.building.edit_items import EditItems
from harnessctl.evaluate.building.making import Maker
from harnessctl.evaluate.items import Items
from harnessctl.evaluate.metrics import EDIT_COLUMNS
from harnessctl.evaluate.setting import Setting


class HeldOutEdits:
    """1000 items by default; with `edit=` each is answered under both harnesses."""

    name = "edit-compliance-held-out"
    title = "Edit Compliance (held out)"
    size = 1000
    columns = EDIT_COLUMNS

    def maker(self, setting: Setting) -> Maker:
        """What makes the items of the seed."""
        return EditItems(setting, self.name, "test")

    def items(self, setting: Setting) -> Items:
        """The items of the seed, built and checked."""
        return built_items(setting, self)


SET = HeldOutEdits()
