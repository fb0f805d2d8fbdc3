"""Operator: one way of varying a harness state; and the draft that operators write their changes into.

To add one: a file in `harnessctl/augment/operators/`, or `manifests/operators/<name>.py` of a project, whose `OPERATOR`
fits the Protocol below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text
from harnessctl.bundle.variation import Changes
from harnessctl.manifests.specs.envelope import Operator as Settings
from harnessctl.records.scenario import Needs

Dimension = Literal["skill-identifier", "skill-content", "tool-definition", "system-prompt", "hook", "message"]
#: What a text is, for a rewriter: a rule is an order, a description a noun phrase or a statement of what a thing does.
TextKind = Literal["rule", "description", "message", "heading", "lead"]
Stage = Literal["mask", "add", "rename", "reword", "reorder", "behave"]
#: Operators run in the order of their stages, then of their names.
STAGES: tuple[Stage, ...] = ("mask", "add", "rename", "reword", "reorder", "behave")


class Rewriter(Protocol):
    """Where new wordings come from. Equal arguments give equal answers as long as the cache behind it is the same."""

    name: str

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        """Other wordings of `text` that keep references, numbers, negation and modality (law h); never `text` itself.

        May be empty. The answer is kept, so that asking again costs nothing.
        """
        ...


class Names(Protocol):
    """Where new identifiers come from. Every name that it gives is new to the harness and to the variant."""

    def tool(self, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a tool. `styles`: `synonym`, `plain`, `opaque`; one of them is drawn."""
        ...

    def skill(self, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a skill, a slug."""
        ...

    def parameter(self, tool: str, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a parameter of a tool, unlike all others of it."""
        ...

    def wished(self, kind: Literal["tool", "skill"], name: str, stream: Stream) -> str:
        """A name for a member that is added: `name` itself where nothing is called so, else one like it."""
        ...


class Facts(Protocol):
    """What is worked out once of a parent state and asked of every variant; made by `augment.parent`."""

    #: Every word (letters, digits, `_`, `-`) of every text, name, schema and module of the parent, lower case.
    words: frozenset[str]
    #: Skills that something which stays whole names: a template, a hook's message or check, code.
    pinned_skills: frozenset[str]
    #: `skill#rule` and `block#item` that must not be masked, with what they require: protected ones and what they need.
    pinned_rules: frozenset[str]
    #: `skill#rule` by the hooks that enforce them.
    enforced: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Draft:
    """A variant under way. `changes` and `applied` are what operators write; all else is for reading.

    `needs` is of the sample that the variant is made for: nothing in it may be masked, no limit may go below what it
    takes up.
    """

    state: HarnessState
    facts: Facts
    names: Names
    rewriter: Rewriter
    seed: int
    number: int
    needs: Needs | None = None
    changes: Changes = field(default_factory=Changes)
    applied: dict[str, list[str]] = field(default_factory=dict)
    fallbacks: int = 0

    def reworded(self, text: Text, kind: TextKind, stream: Stream) -> Text | None:
        """Another wording of `text`, or None (counted in `fallbacks`) where the rewriter has none."""
        found = self.rewriter.wordings(text, kind)
        if not found:
            self.fallbacks += 1
            return None
        return stream.choice(found)


class Operator(Protocol):
    """One way of varying a state. `name` is a slug: that of its file, with `-` for `_`.

    `keeps_difficulty`: an agent that follows its harness scores the same on the variant (law g).
    `options` are the keys of Settings.options that it reads, with their defaults; `reads` the other settings, of `count`
    and `ranges`.

    What an envelope may set an option to is checked by its default's type, and by these where an operator has them:
    `allowed` (option to its values), `patterns` (to a regular expression), `bounds` (to the least and the most), `spans`
    (pairs of options, the first not beyond the second), `choices(state)` (option to the names of a harness that its members
    are patterns of).
    """

    name: str
    dimension: Dimension
    stage: Stage
    keeps_difficulty: bool
    options: Mapping[str, Any]
    reads: frozenset[str]

    def targets(self, draft: Draft) -> Sequence[str]:
        """What it could change, by canonical name (`item-qa`, `item-qa#lookup`, `prompt`); each is drawn for by itself."""
        ...

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        """Write the change of one target into `draft.changes`; false when there was nothing to change."""
        ...
