"""item-reorder: the items of a prompt block in another order, each behind the one that its `after` names [3.2].

What always holds: the items of a block of which one speaks of others by their place stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import edges_left, reordered
from harnessctl.augment.stream import Stream
from harnessctl.augment.users import told_by_place
from harnessctl.bundle.state import HarnessState, Rule


class ItemReorder:
    """Targets: blocks of two items or more."""

    name = "item-reorder"
    dimension: Dimension = "system-prompt"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(_items(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        items = _items(draft.state)[target]
        masked = frozenset(draft.changes.masked_items.get(target, ()))
        left = [item.id for item in items if item.id not in masked]
        order = reordered(left, stream, after=edges_left(items, masked))
        if order is None:
            return False
        draft.changes.item_order[target] = order
        return True


@once
def _items(state: HarnessState) -> dict[str, list[Rule]]:
    by_place = told_by_place(state)
    return {block.id: block.items for block in state.prompt.blocks if len(block.items) > 1 and block.id not in by_place}


OPERATOR = ItemReorder()
