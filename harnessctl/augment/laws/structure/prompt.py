"""Prompt: blocks and items move and are masked as the record says; templates, conditions and pins stay."""

from __future__ import annotations

from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.structure.comparing import TAG, Fields, Found, after_edges, in_order, others, text
from harnessctl.augment.laws.structure.rules import rules
from harnessctl.bundle.state import Block

_BLOCK = Fields("id", "role", "template", "when", "after", "pin")


def check_prompt(case: Case) -> Found:
    """What of the prompt is not as it should be."""
    old, new = case.known.parent.prompt, case.variant.prompt
    changes = case.changes
    if new.inputs is not old.inputs and new.inputs != old.inputs:
        yield "prompt/inputs", "are not the parent's"
    framing = changes.framing or old.framing
    if new.framing is not framing and new.framing != framing:
        yield "prompt/framing", "is not the record's"
    if new.framing is not None and new.framing is not old.framing:
        lists = {"messages", *old.inputs.get("properties", {})}
        for name in new.framing.reverse:
            if name not in lists:
                yield "prompt/framing/reverse", f"turns {name}, which is no input"
        if new.framing.wrap is not None and not TAG.fullmatch(new.framing.wrap):
            yield "prompt/framing/wrap", f"`{new.framing.wrap}` is no tag"
    for block in changes.added_blocks:
        yield f"prompt/{block.id}", "is a block that the parent does not have"
    names = [block.id for block in new.blocks]
    yield from in_order("prompt", names, changes.block_order or case.known.block_order)
    blocks = {block.id: block for block in new.blocks}
    for index, block in enumerate(old.blocks):
        if block.pin and (index >= len(names) or names[index] != block.id):
            yield f"prompt/{block.id}", f"is pinned at {index} and has moved"
        if block.id in blocks and blocks[block.id] is not block:
            yield from _block(case, block, blocks[block.id])
    yield from after_edges("prompt", old.blocks, names)


def _block(case: Case, old: Block, new: Block) -> Found:
    place = f"prompt/{old.id}"
    yield from others(old, new, _BLOCK, f"{place}/")
    yield from text(case, f"{place}/heading", old.heading, new.heading)
    masked = case.changes.masked_items.get(old.id, [])
    yield from rules(case, f"{place}/items", old.items, new.items, masked)
    shown = [item.id for item in new.items]
    due = case.changes.item_order.get(old.id) or [item.id for item in old.items if item.id not in masked]
    yield from in_order(f"{place}/items", shown, due)
    yield from after_edges(f"{place}/items", old.items, shown)
