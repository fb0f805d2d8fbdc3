"""Watched: the names of one variant that no text may hold as words, and those that its references may name.

A hidden name is the canonical name of a tool or skill that is renamed or masked, or of a parameter that no tool shows any
more. A new name is one that the parent does not show: nothing that was there before may be read as it.
"""

from __future__ import annotations

from harnessctl.augment.laws.foreign import properties_of
from harnessctl.augment.laws.known import Case


class Watched:
    """The names of one variant that no text may hold as words, and what its references may name."""

    def __init__(self, case: Case) -> None:
        known, variant, surface = case.known, case.variant, case.variant.surface
        tools = {tool.name for tool in variant.tools}
        skills = {skill.name for skill in variant.skills}
        self.skills = skills
        self.offered = frozenset(
            [f"tool:{name}" for name in tools]
            + [f"skill:{name}" for name in skills]
            + [f"limit:{name}" for name in variant.limits]
        )
        shown = {surface.tools.get(name, name) for name in tools} | {surface.skills.get(name, name) for name in skills}
        #: Canonical names that are shown no more, with why.
        self.hidden: dict[str, str] = {}
        for name in known.skills:
            if name not in skills:
                self.hidden[name] = "a skill that is masked"
        for names, renames in ((tools, surface.tools), (skills, surface.skills)):
            for name in names:
                if (new := renames.get(name, name)) != name:
                    self.hidden[name] = f"shown as `{new}`"
        # A tool and a skill may share a name: where one of the two still has it, it is not hidden.
        self.hidden = {name: why for name, why in self.hidden.items() if name not in shown}
        #: Names that the parent does not show: nothing that was there before may be read as one of them.
        before = {known.view.tool_name(name) for name in known.tools}
        before |= {known.view.skill_name(name) for name in known.skills}
        self.new = shown - before
        self.parameters: dict[str, str] = {}
        self.new_parameters: dict[str, str] = {}
        for tool, renames in surface.parameters.items():
            for name, new in renames.items():
                if new != name:
                    self.parameters.setdefault(name, tool)
                    if known.view.state.surface.parameters.get(tool, {}).get(name) != new:
                        self.new_parameters.setdefault(new, tool)
        if self.parameters:
            self._drop_shown(case)
        self.shown = shown
        self.words = frozenset(self.hidden) | self.new
        self.spans = self.words | self.parameters.keys() | self.new_parameters.keys()

    def _drop_shown(self, case: Case) -> None:
        """A parameter that some tool still shows is not hidden."""
        known, renames = case.known, case.variant.surface.parameters
        hidden = self.parameters.keys() - known.deep_properties
        for tool in case.variant.tools:
            own = known.own_properties.get(tool.name)
            if own is None:
                own, deep = properties_of(tool.parameters)
                hidden -= deep
            hidden -= own - renames[tool.name].keys() if tool.name in renames else own
        for names in renames.values():
            hidden = hidden.difference(names.values())
        self.parameters = {name: self.parameters[name] for name in hidden}
