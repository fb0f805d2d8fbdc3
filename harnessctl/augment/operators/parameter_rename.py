"""parameter-rename: top-level parameters of tools under new names; what tools, hooks and gold get stays canonical.
Beyond the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from harnessctl.augment.mentions import mentioned
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState, Tool

#: Keywords that name properties in a way that a renaming does not follow.
_OPAQUE = ("$ref", "$dynamicRef", "patternProperties", "propertyNames")
_NESTED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


class ParameterRename:
    """Targets: `tool#parameter`, those of added tools too, but for parameters that a text speaks of by name and tools whose
    schema names them in patterns or references."""

    name = "parameter-rename"
    dimension: Dimension = "tool-definition"
    stage: Stage = "rename"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"styles": ["synonym", "plain", "opaque"]}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        added = draft.changes.added_tools
        return [*_targets(draft.state), *_renamable(added, frozenset())] if added else _targets(draft.state)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        tool, _, parameter = target.partition("#")
        styles = settings.options.get("styles", self.options["styles"])
        renames = draft.changes.parameters.setdefault(tool, {})
        renames[parameter] = draft.names.parameter(tool, parameter, stream, styles)
        return True


@once
def _targets(state: HarnessState) -> list[str]:
    return _renamable(state.tools, mentioned(state))


def _renamable(tools: Sequence[Tool], spoken_of: Set[str]) -> list[str]:
    return [
        f"{tool.name}#{name}"
        for tool in tools
        if not any(keyword in schema for schema in _of_the_object(tool.parameters) for keyword in _OPAQUE)
        # Sorted, since a bundle that is read from its file has them in another order than one just compiled.
        for name in sorted(tool.parameters.get("properties", {}))
        if name not in spoken_of
    ]


def _of_the_object(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and those within it that speak of the same object."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in _NESTED:
        inner = schema.get(keyword)
        if keyword == "dependentSchemas" and isinstance(inner, dict):
            inner = list(inner.values())
        for member in inner if isinstance(inner, list) else [inner]:
            yield from _of_the_object(member)


OPERATOR = ParameterRename()
