"""tool-rename: tools under new names, those too that the variant adds. Code, hooks and gold go on with the canonical ones
[3.2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnessctl.augment.mentions import named_bare
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState


class ToolRename:
    """Targets: tools that no text names bare. An added one is renamed as often as any, so that no name gives it away."""

    name = "tool-rename"
    dimension: Dimension = "tool-definition"
    stage: Stage = "rename"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"styles": ["synonym", "plain", "opaque"]}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        added = draft.changes.added_tools
        return (*_names(draft.state), *(tool.name for tool in added)) if added else _names(draft.state)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        styles = settings.options.get("styles", self.options["styles"])
        draft.changes.tools[target] = draft.names.tool(target, stream, styles)
        return True


@once
def _names(state: HarnessState) -> tuple[str, ...]:
    bare = named_bare(state)
    return tuple(tool.name for tool in state.tools if tool.name not in bare)


OPERATOR = ToolRename()
