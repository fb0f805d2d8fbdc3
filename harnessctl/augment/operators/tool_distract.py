"""tool-distract: tools of other uses beside the harness's own. Beyond the paper, whose sets for tool robustness have such
tools [C.3].

What always holds: a distractor writes nothing and reaches nothing; whoever calls it is told that there is nothing, or
that it is not permitted. None is of a use that a tool of the harness has, and none is written otherwise than those are.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harnessctl.augment.distractors import MODULE, SOURCE, Distractor, distractors
from harnessctl.augment.embed import embed
from harnessctl.augment.languages import Language, languages
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import HarnessState, Tool

#: From and to, where the envelope says nothing.
COUNT = (1, 3)
#: Descriptions that are shorter than this, at the median, are of a harness that uses few words.
_SHORT_CHARS: Mapping[Language, int] = {"en": 40, "zh": 16}
#: Group of distractors; no hook looks at it.
GROUP = "distractor"


class ToolDistract:
    """Target: `tools`; `count` distractors are put among them at random places."""

    name = "tool-distract"
    dimension: Dimension = "tool-definition"
    stage: Stage = "add"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"answers": ["nothing", "refused"]}
    allowed: Mapping[str, Sequence[str]] = {"answers": ("nothing", "refused")}
    reads: frozenset[str] = frozenset({"count"})

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("tools",)

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        low, high = (int(bound) for bound in settings.count or COUNT)
        answers = settings.options.get("answers", self.options["answers"])
        pool = list(foreign_to(draft.state))
        wanted = min(stream.integer(low, high), len(pool))
        drawn = [pool.pop(stream.integer(0, len(pool) - 1)) for _ in range(wanted)]
        if not drawn or not answers:
            return False
        changes = draft.changes
        order = list(changes.tool_order or [tool.name for tool in (*draft.state.tools, *changes.added_tools)])
        module = embed(draft, MODULE, SOURCE)
        style = style_of(draft.state)
        for distractor in drawn:
            name = draft.names.wished("tool", style.joint.join(distractor.name.split("_")), stream)
            run = {"python": f"{module}:{stream.choice(answers)}"}
            changes.added_tools.append(distractor_tool(distractor, name, style, run))
            order.insert(stream.integer(0, len(order)), name)
        changes.tool_order = order
        return True


@dataclass(slots=True, frozen=True)
class Style:
    """How the parent writes its tools, so that the form gives none away."""

    joint: str
    is_short: bool
    has_docs: bool
    is_closed: bool


@once
def style_of(state: HarnessState) -> Style:
    """How the tools of `state` are written."""
    tools = state.tools
    sizes = [sum(len(part) for part in tool.description if isinstance(part, str)) for tool in tools]
    names = "".join(tool.name for tool in tools)
    schemas = [tool.parameters for tool in tools if tool.parameters.get("properties")]
    closed = sum(schema.get("additionalProperties") is False for schema in schemas)
    return Style(
        joint="-" if names.count("-") > names.count("_") else "_",
        is_short=bool(sizes) and statistics.median(sizes) < _SHORT_CHARS[languages(state)[0]],
        has_docs=any(tool.docs for tool in tools),
        is_closed=2 * closed > len(schemas),
    )


def distractor_tool(distractor: Distractor, name: str, style: Style, run: dict[str, Any]) -> Tool:
    """A distractor as a tool called `name`, written as the harness writes its own."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in distractor.parameters.items()},
        "required": list(distractor.required),
    }
    return Tool(
        name=name,
        description=[distractor.short if style.is_short else distractor.description],
        group=GROUP,
        parameters=schema | {"additionalProperties": False} if style.is_closed else schema,
        docs={f"/properties/{name}": [text] for name, text in distractor.docs.items()} if style.has_docs else {},
        run=run,
    )


@once
def foreign_to(state: HarnessState) -> list[Distractor]:
    """The distractors that no tool of `state` is like: its tools say none of the words of what they are about."""
    said = " ".join(
        " ".join([tool.name, *(part for part in tool.description if isinstance(part, str))]) for tool in state.tools
    )
    said = " ".join(re.split(r"[\s_-]+", said.lower()))
    pool = distractors(languages(state)[0])
    return [distractor for distractor in pool if not any(word in said for word in distractor.about)]


OPERATOR = ToolDistract()
