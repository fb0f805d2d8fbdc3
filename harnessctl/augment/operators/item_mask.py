"""item-mask: prompt items left out. Beyond the paper, which masks rules of skills only.

What always holds: a protected item stays, and what an item that stays requires or mentions; an item that tells a limit
stays, since hooks and scores hold it whether it is told or not; a block keeps at least one item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState, Rule
from harnessctl.bundle.text import Ref


class ItemMask:
    """Targets: `block#item`. Those that use others come before them, so that both may go.

    What was told is told no more: an agent that was kept right by it may do worse.
    """

    name = "item-mask"
    dimension: Dimension = "system-prompt"
    stage: Stage = "mask"
    keeps_difficulty = False
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        pinned = draft.facts.pinned_rules
        return [target for target in _targets(draft.state) if target not in pinned]

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        if draft.needs is not None and target in draft.needs.rules:
            return False
        block, _, item = target.partition("#")
        items = _items(draft.state)[block]
        masked = draft.changes.masked_items.get(block, [])
        left = [other for other in items if other.id not in masked]
        if len(left) < 2 or any(item in _uses(other) for other in left):
            return False
        draft.changes.masked_items[block] = [*masked, item]
        return True


@once
def _items(state: HarnessState) -> dict[str, list[Rule]]:
    return {block.id: block.items for block in state.prompt.blocks if block.items}


@once
def _targets(state: HarnessState) -> list[str]:
    found: list[str] = []
    for block, items in _items(state).items():
        uses = {item.id: _uses(item) for item in items}
        held: set[str] = set()
        waiting = [item.id for item in items if item.protected or item.limit is not None or _limits(item)]
        while waiting:
            name = waiting.pop()
            if name not in held:
                held.add(name)
                waiting += uses.get(name, ())
        left = [item.id for item in items if item.id not in held]
        while free := [name for name in left if not any(name in uses[other] for other in left)]:
            found += [f"{block}#{name}" for name in free]
            left = [name for name in left if name not in free]
    return found


def _uses(item: Rule) -> set[str]:
    """The items that this one requires or mentions."""
    used = {part.name for part in item.text if isinstance(part, Ref) and part.kind == "rule"} - {item.id}
    return used | {item.requires} if item.requires is not None else used


def _limits(item: Rule) -> bool:
    return any(isinstance(part, Ref) and part.kind == "limit" for part in item.text)


OPERATOR = ItemMask()
