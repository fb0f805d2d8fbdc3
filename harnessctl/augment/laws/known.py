"""Known: what an audit works out once of the parent, and one variant under audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnessctl.augment.laws.foreign import (
    code_spans,
    properties_of,
    script_spans,
    state_strings,
    template_names,
    told_values,
    told_words,
)
from harnessctl.augment.laws.marks import MarksOf
from harnessctl.augment.laws.numbers import written_out
from harnessctl.augment.laws.places import all_texts
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import Changes
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.runtime.surface import SurfaceView


class Known:
    """Facts of a parent state. `envelope`, where there is one, narrows the ranges of limits."""

    def __init__(self, parent: HarnessState, envelope: Envelope | None = None, *, kept: bool = True) -> None:
        self.parent = parent
        self.view = SurfaceView(parent)
        self.marks = MarksOf(kept=kept)
        self.tools = {tool.name: tool for tool in parent.tools}
        self.skills = {skill.name: skill for skill in parent.skills}
        self.hooks = {hook.id: hook for hook in parent.hooks}
        self.blocks = {block.id: block for block in parent.prompt.blocks}
        self.tool_order = list(self.tools)
        self.skill_order = list(self.skills)
        self.block_order = list(self.blocks)
        #: By tool, the names of its parameters, and of properties within them.
        self.own_properties: dict[str, frozenset[str]] = {}
        self.deep_properties: frozenset[str] = frozenset()
        for tool in parent.tools:
            self.own_properties[tool.name], deep = properties_of(tool.parameters)
            self.deep_properties |= deep
        self.properties: frozenset[str] = self.deep_properties.union(*self.own_properties.values())
        #: Every name that a model or the code behind it knows something of the parent by.
        self.names: frozenset[str] = self.properties.union(
            self.tools, self.skills, parent.surface.tools.values(), parent.surface.skills.values()
        )
        #: Code spans of every text, template and message of the parent that are no reference.
        self.spans: frozenset[str] = frozenset(
            span for _, text in all_texts(parent) for span in self.marks.keep(text).spans
        ) | frozenset(span for block in parent.prompt.blocks if block.template for span in template_names(block.template).marks.spans)  # fmt: skip
        #: (place, kind or None, name) of the code spans in what Python and scripts of the parent may say.
        self.said: tuple[tuple[str, str | None, str], ...] = tuple(
            (f"{where}/{name}", kind, span)
            for where, sources, spans_of in (("code", parent.code, code_spans), ("files", parent.files, script_spans))
            for name, source in sources.items()
            for kind, span in sorted(spans_of(source), key=str)
        )
        self.said_names: frozenset[str] = frozenset(name for _, _, name in self.said)
        self.compared: frozenset[str] = frozenset(state_strings(parent))
        #: Bare words that the runtime tells of checks without a message, by hook.
        self.told: dict[str, frozenset[str]] = {hook.id: told_words(hook) for hook in parent.hooks if told_words(hook)}
        #: Limits whose value is written out where it cannot follow, with the place.
        self.written_out: dict[str, str] = written_out(parent)
        #: Words in the values of the parent's schemas, by tool.
        self.values: dict[str, frozenset[str]] = {
            t.name: found for t in parent.tools if (found := told_values(t.parameters))
        }
        #: Places of whole texts whose references other backticks swallow: the author's doing, not the variant's.
        self.swallowed: frozenset[str] = frozenset(
            place for place, text in all_texts(parent) if not self.marks(text).whole
        )
        self.ranges: Mapping[str, tuple[float, float]] = _ranges(envelope)


def _ranges(envelope: Envelope | None) -> dict[str, tuple[float, float]]:
    """The narrowest range of each limit over all operators of the envelope."""
    out: dict[str, tuple[float, float]] = {}
    for settings in envelope.operators.values() if envelope is not None else ():
        for name, (low, high) in settings.ranges.items():
            known = out.get(name, (low, high))
            out[name] = (max(low, known[0]), min(high, known[1]))
    return out


@dataclass(slots=True)
class Case:
    """One variant under audit: `view` is what a model sees of it."""

    known: Known
    changes: Changes
    variant: HarnessState
    view: SurfaceView
    thorough: bool
