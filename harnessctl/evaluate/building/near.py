"""Near: tools that are put beside the due ones: twins of them, twins of others, tools of another trade; by level [C.3].

| level  | twins of a due tool | twins of other tools | of another trade |
|--------|---------------------|----------------------|------------------|
| easy   | 0                   | 0                    | 2                |
| medium | 1                   | 1                    | 1                |
| hard   | 3                   | 2                    | 1                |

What always holds: no twin that is taken answers what was asked for: called with gold's arguments it says none of the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harnessctl.augment.distractors import MODULE as FAR_MODULE
from harnessctl.augment.distractors import SOURCE as FAR_SOURCE
from harnessctl.augment.languages import Language, languages
from harnessctl.augment.names import NameMaker
from harnessctl.augment.operators.tool_distract import distractor_tool, foreign_to, style_of
from harnessctl.augment.stream import Stream
from harnessctl.augment.twins import MODULE, Scope, scopes, twin, twin_names, twin_result, twin_source, twinned
from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.bundle.variation import Changes
from harnessctl.records.gold_call import GoldCall
from harnessctl.records.task import DistractorTool

Level = Literal["easy", "medium", "hard"]
LEVELS: tuple[Level, ...] = ("easy", "medium", "hard")
#: Twins of due tools, twins of others, tools of another trade.
COUNTS: dict[Level, tuple[int, int, int]] = {"easy": (0, 0, 2), "medium": (1, 1, 1), "hard": (3, 2, 1)}


def level_of(name: str, seed: int, number: int) -> Level:
    """The level of candidate `number`: each three candidates have all of them, in an order that is drawn."""
    place, which = divmod(number, len(LEVELS))
    return Stream(name, seed, "levels", place).shuffled(LEVELS)[which]


@dataclass(slots=True)
class _Draft:
    state: HarnessState
    names: NameMaker
    stream: Stream
    language: Language
    changes: Changes
    placed: list[DistractorTool]


def distracted(
    state: HarnessState,
    words: frozenset[str],
    due: Sequence[GoldCall],
    level: Level,
    language: str,
    answers: Callable[[str], bool],
    stream: Stream,
) -> tuple[Changes, list[DistractorTool]] | None:
    """The harness's change with the distractors of a level; null where there are not so many that answer nothing.

    `due` are gold's calls, `answers(text)` says whether a result tells a fact that was asked for, `words` are those of the
    harness, of which no name is one.
    """
    spoken: Language = "zh" if language.startswith("zh") else "en"
    draft = _Draft(state, NameMaker(words), stream, spoken, Changes(), [])
    twins, siblings, far = COUNTS[level]
    by_name = {tool.name: tool for tool in twinned(state)}
    own = list({call.tool: call for call in due if call.tool in by_name}.values())
    if twins and not own:
        return None
    written_in = languages(state)[0]
    ways = [(call, scope) for scope in stream.shuffled(scopes(written_in)) for call in own]
    taken = 0
    for call, scope in ways:
        if taken == twins:
            break
        taken += _add_twin(draft, by_name[call.tool], scope, "twin", call.arguments, answers)
    if taken < twins:
        return None
    others = [tool for tool in by_name.values() if tool.name not in {call.tool for call in due}]
    for tool in stream.shuffled(others)[:siblings]:
        _add_twin(draft, tool, stream.choice(scopes(written_in)), "sibling", {}, answers)
    _add_far(draft, far)
    draft.changes.tool_order = _order(draft)
    return draft.changes, draft.placed


def _add_twin(
    draft: _Draft, tool: Tool, scope: Scope, near: Literal["twin", "sibling"], arguments: dict[str, Any],
    answers: Callable[[str], bool],
) -> bool:  # fmt: skip
    """Add the twin of a tool for one scope, unless what it tells is an answer."""
    name = draft.names.wished("tool", draft.stream.choice(twin_names(tool.name, scope)), draft.stream)
    made = twin(draft.state, tool, scope, name, draft.language, MODULE)
    assert made.run is not None
    told = twin_result(draft.state, made.run["python"], arguments)
    if near == "twin" and answers(" | ".join(_values(told, arguments))):
        return False
    draft.changes.added_tools.append(made)
    draft.changes.code[MODULE] = twin_source(draft.state)
    draft.placed.append(DistractorTool(tool=name, near=near, like=tool.name))
    return True


def _values(told: Any, arguments: dict[str, Any]) -> Iterator[str]:
    """What a result tells, without what the caller said himself."""
    if isinstance(told, dict):
        for name, value in told.items():
            if name not in arguments or arguments[name] != value:
                yield from _values(value, {})
    elif isinstance(told, list):
        for value in told:
            yield from _values(value, {})
    else:
        yield str(told)


def _add_far(draft: _Draft, count: int) -> None:
    style = style_of(draft.state)
    for distractor in draft.stream.shuffled(foreign_to(draft.state))[:count]:
        wished = style.joint.join(distractor.name.split("_"))
        name = draft.names.wished("tool", wished, draft.stream)
        run = {"python": f"{FAR_MODULE}:{draft.stream.choice(('nothing', 'refused'))}"}
        draft.changes.added_tools.append(distractor_tool(distractor, name, style, run))
        draft.changes.code[FAR_MODULE] = FAR_SOURCE
        draft.placed.append(DistractorTool(tool=name, near="far"))


def _order(draft: _Draft) -> list[str]:
    """The harness's tools in their order, the added ones at places that were drawn."""
    order = [tool.name for tool in draft.state.tools]
    for tool in draft.changes.added_tools:
        order.insert(draft.stream.integer(0, len(order)), tool.name)
    return order
