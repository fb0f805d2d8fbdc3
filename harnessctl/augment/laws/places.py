"""Places: every text of a state that a model may read, with its owner and its path in the state.

What always holds: nothing is left out: verbatim rules, examples, headings and the framing's lead are here too. Templates
and what code says are elsewhere (`foreign`), since they are no Texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from harnessctl.bundle.state import Action, Block, HarnessState, Hook, Skill, Tool
from harnessctl.bundle.text import Text


def skill_plain(skill: Skill) -> list[Text]:
    """The texts of `skill_texts`, without their paths."""
    out = [rule.text for rule in skill.rules]
    out += [part.text for part in skill.body]
    out.append(skill.description)
    for example in skill.examples:
        out += [message.content for message in example]
    return out


def skill_texts(skill: Skill) -> Iterator[tuple[str, Text]]:
    """(path below `skills/<name>/`, text)."""
    yield "description", skill.description
    for index, part in enumerate(skill.body):
        yield f"parts/{index}", part.text
    for rule in skill.rules:
        yield f"rules/{rule.id}", rule.text
    for number, example in enumerate(skill.examples):
        for index, message in enumerate(example):
            yield f"examples/{number}/{index}", message.content


def tool_texts(tool: Tool) -> Iterator[tuple[str, Text]]:
    """(path below `tools/<name>/`, text)."""
    yield "description", tool.description
    for pointer, text in tool.docs.items():
        yield f"docs{pointer}", text


def block_texts(block: Block) -> Iterator[tuple[str, Text]]:
    """(path below `prompt/<id>/`, text)."""
    yield "heading", block.heading
    for item in block.items:
        yield f"items/{item.id}", item.text


def action_of(hook: Hook) -> Action | None:
    """What the hook does; null for one that observes."""
    return hook.otherwise if hook.otherwise is not None else hook.then


def hook_texts(hook: Hook) -> Iterator[tuple[str, Text]]:
    """(path below `hooks/<id>/`, text)."""
    action = action_of(hook)
    if action is not None and action.message is not None:
        yield "message", action.message.text


def all_texts(state: HarnessState) -> Iterator[tuple[str, Text]]:
    """(place, text) of the whole state."""
    for skill in state.skills:
        yield from ((f"skills/{skill.name}/{path}", text) for path, text in skill_texts(skill))
    for tool in state.tools:
        yield from ((f"tools/{tool.name}/{path}", text) for path, text in tool_texts(tool))
    for block in state.prompt.blocks:
        yield from ((f"prompt/{block.id}/{path}", text) for path, text in block_texts(block))
    for hook in state.hooks:
        yield from ((f"hooks/{hook.id}/{path}", text) for path, text in hook_texts(hook))
    if state.prompt.framing is not None:
        yield "prompt/framing/lead", state.prompt.framing.lead
