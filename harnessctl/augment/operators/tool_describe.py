"""tool-describe: descriptions of tools and of their parameters in other words [3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text


class ToolDescribe:
    """Targets: tools. A description is reworded with each tool that is drawn, each parameter's by `parameters`' rate."""

    name = "tool-describe"
    dimension: Dimension = "tool-definition"
    stage: Stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"parameters": 1.0}
    bounds: Mapping[str, tuple[float, float]] = {"parameters": (0, 1)}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return tuple(_texts(draft.state))

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        rate = settings.options.get("parameters", self.options["parameters"])
        is_changed = False
        for place, text in _texts(draft.state)[target]:
            if not place.endswith("/description") and not stream.chance(rate):
                continue
            new = draft.reworded(text, "description", stream)
            if new is not None:
                draft.changes.texts[place] = new
                is_changed = True
        return is_changed


@once
def _texts(state: HarnessState) -> dict[str, list[tuple[str, Text]]]:
    """(place, text) of each text of each tool that has any; its own description first, then those of its schema."""
    found: dict[str, list[tuple[str, Text]]] = {}
    for tool in state.tools:
        at = f"tools/{tool.name}"
        texts = [(f"{at}/description", tool.description)]
        texts += [(f"{at}/docs{pointer}", tool.docs[pointer]) for pointer in sorted(tool.docs)]
        texts = [(place, text) for place, text in texts if text]
        if texts:
            found[tool.name] = texts
    return found


OPERATOR = ToolDescribe()
