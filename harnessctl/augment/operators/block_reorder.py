"""block-reorder: prompt blocks in another order [3.2].

What always holds: a pinned block keeps its index; a block stays behind the one that its `after` names; system and user
blocks change places among themselves only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.order import reordered
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState


class BlockReorder:
    """Target: `prompt`, where two blocks of one role may move."""

    name = "block-reorder"
    dimension: Dimension = "system-prompt"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("prompt",) if _places(draft.state).can_move else ()

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        places = _places(draft.state)
        order = reordered(places.names, stream, after=places.after, fixed=places.pinned, lane=places.roles.__getitem__)
        if order is None:
            return False
        draft.changes.block_order = order
        return True


@dataclass(slots=True, frozen=True)
class _Places:
    names: list[str]
    roles: dict[str, str]
    after: dict[str, str]
    pinned: frozenset[str]
    can_move: bool


@once
def _places(state: HarnessState) -> _Places:
    blocks = state.prompt.blocks
    free = [block.role for block in blocks if not block.pin]
    return _Places(
        names=[block.id for block in blocks],
        roles={block.id: block.role for block in blocks},
        after={block.id: block.after for block in blocks if block.after is not None},
        pinned=frozenset(block.id for block in blocks if block.pin),
        can_move=len(free) > len(set(free)),
    )


OPERATOR = BlockReorder()
