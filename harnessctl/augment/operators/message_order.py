"""message-order: what viewers wrote and did, newest first. Paper [C.2], 'message processing'.

What always holds: nothing that a template shows is lost, since places in a list (`actions[-5:]`) still mean what they did
(see `runtime.prompt`); a talk's history stays in the order of time unless the envelope names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2.nodes
import msgspec

from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.sandbox import strict_environment, undeclared_names
from harnessctl.bundle.state import Framing, HarnessState

MESSAGES = "messages"
#: A list of objects with one of the first and none of the second tells of single events, not of a talk.
_EVENT = ("viewer", "user", "visitor", "action", "event")
_TALK = ("speaker", "role", "turn", "reply", "answer")
#: Filters that take a member by its place in the order in which a list is gone through.
_BY_ORDER = frozenset({"first", "last"})


class MessageOrder:
    """Targets: `messages`, and inputs that user blocks show and that hold events of viewers, such as `actions`.

    `inputs` names further ones, a history for example.
    """

    name = "message-order"
    dimension: Dimension = "message"
    stage: Stage = "reorder"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"inputs": []}
    reads: frozenset[str] = frozenset()

    def choices(self, state: HarnessState) -> Mapping[str, Sequence[str]]:
        """What the members of options may name."""
        return {"inputs": _lists(state)}

    def targets(self, draft: Draft) -> Sequence[str]:
        return _lists(draft.state)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        if target not in _events(draft.state) and target not in settings.options.get("inputs", ()):
            return False
        framing = draft.changes.framing or draft.state.prompt.framing or Framing()
        turned = list(framing.reverse)
        if target in turned:
            turned.remove(target)
        else:
            turned.append(target)
        draft.changes.framing = msgspec.structs.replace(framing, reverse=turned)
        return True


@once
def _lists(state: HarnessState) -> list[str]:
    """The lists that what is said to the model goes through."""
    blocks = [block for block in state.prompt.blocks if block.role == "user"]
    used: set[str] = set() if blocks else {MESSAGES}
    ordered: set[str] = set()
    for block in blocks:
        if block.template is not None:
            used |= undeclared_names(block.template)
            ordered |= set(_taken_by_order(block.template))
    arrays = {name for name, schema in state.prompt.inputs.get("properties", {}).items() if _is_array(schema)}
    return [name for name in (MESSAGES, *sorted(arrays)) if name in used and name not in ordered]


@once
def _events(state: HarnessState) -> frozenset[str]:
    """Those of the lists that hold single events."""
    properties = state.prompt.inputs.get("properties", {})
    return frozenset(name for name in _lists(state) if name == MESSAGES or _tells_events(properties[name]))


def _is_array(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _tells_events(schema: dict[str, Any]) -> bool:
    items = schema.get("items")
    names = items.get("properties", {}) if isinstance(items, dict) else {}
    return any(name in names for name in _EVENT) and not any(name in names for name in _TALK)


def _taken_by_order(template: str) -> Iterator[str]:
    """Names of lists of which something takes a member or a part by the order in which they are gone through."""
    tree = strict_environment().parse(template)
    for node in tree.find_all(jinja2.nodes.Filter):
        if node.name in _BY_ORDER and node.node is not None:
            yield from _names(node.node)
    for node in tree.find_all(jinja2.nodes.Getitem):
        # A filter makes another list, whose places are those of the iteration: `(actions | list)[-5:]`.
        for inner in [node.node, *node.node.find_all(jinja2.nodes.Filter)]:
            if isinstance(inner, jinja2.nodes.Filter):
                yield from _names(inner)


def _names(node: jinja2.nodes.Node) -> Iterator[str]:
    yield from (name.name for name in [node, *node.find_all(jinja2.nodes.Name)] if isinstance(name, jinja2.nodes.Name))


OPERATOR = MessageOrder()
