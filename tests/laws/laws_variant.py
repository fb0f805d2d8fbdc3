"""A correct variant made by hand of the hostile project, with every kind of change in it."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle import Bundle
from harnessctl.bundle.state import Action, Framing, HarnessState, Hook, Message, Part, Skill, Tool
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, HookChange, Variation, vary


def changes_of_everything() -> Changes:
    """Renames, masks, wordings, orders, numbers, additions, hooks and framing."""
    return Changes(
        tools={"get": "take_all", "get_item": "take_one", "load_skill": "open_guide"},
        skills={"price": "cost-help", "item-qa": "thing-help"},
        parameters={
            "get_item": {"link_id": "ref_no", "count": "how_many"},
            "get_item_price": {"link_id": "ref_no"},
            "load_skill": {"skill": "guide"},
        },
        masked_skills=["item-qa-more"],
        masked_rules={"price": ["then"], "ask": ["ask"]},
        masked_items={"always": ["shown", "asked"]},
        texts={
            "skills/price/rules/look": ["Before any price, call ", Ref("tool", "get_item"), "."],
            "skills/price/rules/short": ["No more than ", Ref("limit", "reply_max_chars"), " characters."],
            "tools/get_item/description": ["One comes of it. Use no `x` here."],
            "tools/get_item/docs/properties/link_id": ["Which one."],
            "hooks/first-look/message": [Ref("tool", "get_item"), " comes first, see ", Ref("skill", "item-qa"), "."],
            "prompt/second/items/one": ["First load ", Ref("skill", "item-qa"), "."],
        },
        skill_order=["ask", "item-qa", "spare-room", "price"],
        tool_order=["load_skill", "item", "show", "spare_tool", "get_item_price", "get_item", "get"],
        block_order=["base", "always", "third", "second", "skills", "viewer"],
        rule_order={"item-qa": ["short", "exact", "look", "then", "note-1", "ask", "more", "said"]},
        item_order={"always": ["brief", "never", "honest"]},
        parameter_order={"get_item": ["note", "count", "link_id"]},
        limits={"reply_max_chars": 100, "discount": 0.25},
        added_skills=[
            Skill(name="spare-room", kind="strategy", description=["Says how rooms are."], body=[Part(text=["Say."])])
        ],
        added_tools=[Tool(name="spare_tool", description=["Tells the hour."], group="retrieval")],
        added_hooks=[
            Hook(
                id="busy-once",
                event="pre_tool",
                check={"python": "spare_code:busy"},
                otherwise=Action(action="block", message=Message(text=["Call ", Ref("tool", "get_item"), " again."])),
                on_error="pass",
            )
        ],
        hooks={"short": HookChange(max_retries=2, role="system"), "again": HookChange(wrap="hint")},
        code={"spare_code": "def busy(names):\n    return True\n"},
        framing=Framing(reverse=["messages", "actions"], lead=["What was said:"], wrap="said"),
    )


def record(parent: Bundle, changes: Changes) -> Variation:
    """The record of a variant; digests do not matter to the laws."""
    return Variation(
        parent=parent.digest,
        variant="0" * 64,
        harness=parent.name,
        envelope="by-hand-1.0.0",
        envelope_digest="0" * 64,
        seed=0,
        number=0,
        changes=changes,
    )


def made(parent: Bundle, changes: Changes | None = None) -> tuple[Variation, HarnessState]:
    """The record and the variant, which a test may alter as it likes: it shares nothing."""
    variation = record(parent, changes or changes_of_everything())
    return variation, msgspec.json.decode(msgspec.json.encode(vary(parent.state, variation.changes)), type=HarnessState)


def tool(state: HarnessState, name: str) -> Tool:
    """A tool of a state."""
    return next(member for member in state.tools if member.name == name)


def skill(state: HarnessState, name: str) -> Skill:
    """A skill of a state."""
    return next(member for member in state.skills if member.name == name)


def hook(state: HarnessState, name: str) -> Hook:
    """A hook of a state."""
    return next(member for member in state.hooks if member.id == name)


def block(state: HarnessState, name: str) -> Any:
    """A block of a state."""
    return next(member for member in state.prompt.blocks if member.id == name)


def rule(owner: Any, name: str) -> Any:
    """A rule of a skill, an item of a block."""
    return next(member for member in (owner.rules if isinstance(owner, Skill) else owner.items) if member.id == name)


def lane(state: HarnessState, owner: str, name: str) -> list[str]:
    """The list of a skill's body in which a rule stands."""
    return next(part.rules for part in skill(state, owner).body if name in part.rules)
