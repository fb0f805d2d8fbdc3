"""One operator at a time over all its targets, with the smallest rewriter and no envelope."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harnessctl.augment import operators
from harnessctl.augment.names import NameMaker
from harnessctl.augment.operator import Draft, Operator, Settings, TextKind
from harnessctl.augment.parent import Parent
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Block, HarnessState, Hook, Limit, Prompt, Rule, Skill, Tool
from harnessctl.bundle.text import Ref, Text
from harnessctl.bundle.variation import Changes, vary
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.scenario import Needs
from harnessctl.runtime.surface import SurfaceView

MINE = ("tool", "parameter", "block", "item", "limit", "hook", "message")


class Shouting:
    """A rewriter that puts every text between two marks."""

    name = "shouting"

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        return [["1! ", *text], ["2! ", *text]] if text else []


@cache
def operator(name: str) -> Operator:
    """The operator of this name."""
    return importlib.import_module(f"{operators.__name__}.{name.replace('-', '_')}").OPERATOR


@cache
def names() -> tuple[str, ...]:
    """The operators of tools, parameters, prompt, limits, hooks and messages."""
    found = [module.name for module in pkgutil.iter_modules([str(Path(operators.__path__[0]))])]
    return tuple(name.replace("_", "-") for name in found if name.split("_")[0] in MINE)


def draft_of(
    state: HarnessState, *, number: int = 0, needs: Needs | None = None, changes: Changes | None = None
) -> Draft:
    facts = Parent(state)
    return Draft(
        state=state,
        facts=facts,
        names=NameMaker(facts.words),
        rewriter=Shouting(),
        seed=7,
        number=number,
        needs=needs,
        changes=changes or Changes(),
    )


def apply(name: str, draft: Draft, *, only: Sequence[str] | None = None, **settings: Any) -> list[str]:
    """Run the operator on its targets; those that it changed."""
    given = Settings(**settings)
    found = operator(name)
    return [
        target
        for target in found.targets(draft)
        if (only is None or target in only)
        and found.apply(target, draft, given, Stream(draft.seed, draft.number, name, target))
    ]


def varied(
    name: str, state: HarnessState, *, number: int = 0, needs: Needs | None = None, **settings: Any
) -> HarnessState:
    """The variant that one operator makes of all its targets; a view of it has been made."""
    draft = draft_of(state, number=number, needs=needs)
    apply(name, draft, **settings)
    return seen(vary(state, draft.changes))


def seen(state: HarnessState) -> HarnessState:
    """`state`, after everything that a model would see of it was rendered."""
    view = SurfaceView(state)
    for skill in state.skills:
        view.skill_body(skill.name)
    for hook in state.hooks:
        for action in (hook.otherwise, hook.then):
            if action is not None and action.message is not None:
                view.render(action.message.text)
    for block in state.prompt.blocks:
        for text in (block.heading, *(item.text for item in block.items)):
            view.render(text)
    return state


def rule(id: str, text: str | Text = "", **fields: Any) -> Rule:
    return Rule(id=id, text=[text or f"Mind {id}."] if isinstance(text, str) else text, **fields)


def tool(name: str, *parameters: str, **fields: Any) -> Tool:
    """A reading tool with string parameters."""
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters}, "required": list(parameters)}
    given: dict[str, Any] = {
        "description": ["Reads facts."],
        "group": "retrieval",
        "parameters": schema,
        "docs": {f"/properties/{p}": [f"The {p}."] for p in parameters},
        "run": {"python": f"shop:{name}"},
    }
    return Tool(name=name, **{**given, **fields})


def load_skill(description: str = "Loads a skill.") -> Tool:
    return Tool(
        name="load_skill",
        description=[description],
        group="flow-control",
        parameters={"type": "object", "properties": {"skill": {"type": "string"}}, "required": ["skill"]},
        run={"builtin": "load_skill"},
    )


def state_of(
    *,
    tools: Sequence[Tool] = (),
    hooks: Sequence[Hook] = (),
    blocks: Sequence[Block] = (),
    inputs: dict[str, Any] | None = None,
    limits: dict[str, Limit] | None = None,
    loads: str = "Loads a skill.",
    answers: str = "Answers.",
    **fields: Any,
) -> HarnessState:
    """A small state: one skill, `load_skill` and what is given."""
    answer = Skill(name="answer", kind="reply", description=[answers], body=[])
    held = {name: Limit(value=value) for name, value in DEFAULT_LIMITS.items()} | (limits or {})
    return HarnessState(
        skills=[answer],
        tools=[load_skill(loads), *tools],
        hooks=list(hooks),
        prompt=Prompt(inputs=inputs or {}, blocks=list(blocks) or [Block(id="base", template="You help.")]),
        limits=held,
        **fields,
    )


def refs(state: HarnessState) -> list[Ref]:
    """Every reference in texts of the prompt, the tools and the hooks."""
    texts: list[Text] = [item.text for block in state.prompt.blocks for item in block.items]
    texts += [block.heading for block in state.prompt.blocks]
    texts += [text for tool in state.tools for text in (tool.description, *tool.docs.values())]
    actions = [action for hook in state.hooks for action in (hook.otherwise, hook.then) if action is not None]
    texts += [action.message.text for action in actions if action.message is not None]
    return [part for text in texts for part in text if isinstance(part, Ref)]
