"""item-paraphrase: items and headings of prompt blocks in other words; a verbatim item stays as it is. Beyond the paper,
which rewords rules of skills only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage, TextKind
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text


class ItemParaphrase:
    """Targets: `block#item`, and `block` for its heading."""

    name = "item-paraphrase"
    dimension: Dimension = "system-prompt"
    stage: Stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(_texts(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        block, _, item = target.partition("#")
        if item in draft.changes.masked_items.get(block, ()):
            return False
        text, kind = _texts(draft.state)[target]
        new = draft.reworded(text, kind, stream)
        if new is None:
            return False
        draft.changes.texts[f"prompt/{block}/items/{item}" if item else f"prompt/{block}/heading"] = new
        return True


@once
def _texts(state: HarnessState) -> dict[str, tuple[Text, TextKind]]:
    found: dict[str, tuple[Text, TextKind]] = {}
    for block in state.prompt.blocks:
        if block.heading:
            found[block.id] = (block.heading, "heading")
        for item in block.items:
            if not item.verbatim:
                found[f"{block.id}#{item.id}"] = (item.text, "rule")
    return found


OPERATOR = ItemParaphrase()
