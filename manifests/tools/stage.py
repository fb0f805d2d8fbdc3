"""Stage: what is shown on air and in which order."""

from __future__ import annotations

from typing import Any

import shelf

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext


async def get_queue(ctx: ToolContext) -> dict[str, Any]:
    """The link on air, as the request or else the table has it, and those that wait, in order."""
    now = on_air(ctx)
    return {"now": now, "waiting": [number for number in _waiting(ctx, shelf.room(ctx)["room_id"]) if number != now]}


def on_air(ctx: ToolContext) -> int:
    """The link on air, as the request or else the table has it."""
    room = shelf.room(ctx)["room_id"]
    now = ctx.context.get("current_link_id")
    if now is not None:
        return now
    return shelf.rows(ctx, "SELECT current_link_id FROM live_state WHERE room_id = ?", room)[0]["current_link_id"]


async def queue_link(link_id: int, place: str, ctx: ToolContext) -> dict[str, Any]:
    """Have a link presented next, or after all that wait. The link on air is never cut off."""
    item = shelf.link(ctx, link_id)
    room = shelf.room(ctx)["room_id"]
    if link_id == on_air(ctx):
        raise ToolError(f"link {link_id} is on air now")
    if item["stock"] == 0:
        raise ToolError(f"link {link_id} is sold out, so it is not presented")
    waiting = [number for number in _waiting(ctx, room) if number != link_id]
    waiting.insert(0 if place == "next" else len(waiting), link_id)
    first = shelf.rows(ctx, "SELECT position FROM explain_queue WHERE room_id = ? AND status = 'now'", room)[0][
        "position"
    ]
    shelf.rows(
        ctx,
        "INSERT INTO explain_queue VALUES (?, ?, 0, 'waiting', 1) ON CONFLICT (room_id, link_id) "
        "DO UPDATE SET status = 'waiting', requests = requests + 1",
        room,
        link_id,
    )
    for position, number in enumerate(waiting, first + 1):
        shelf.rows(
            ctx, "UPDATE explain_queue SET position = ? WHERE room_id = ? AND link_id = ?", position, room, number
        )
    return {"link_id": link_id, "place": waiting.index(link_id) + 1, "waiting": waiting}


async def show_card(link_id: int, ctx: ToolContext) -> dict[str, Any]:
    """Put the card of a link on the screen, where viewers can tap it."""
    item = shelf.link(ctx, link_id)
    if item["stock"] == 0:
        raise ToolError(f"link {link_id} is sold out, so its card is not shown")
    card = shelf.next_id(ctx, "screen_cards", "card_id", "S")
    room = shelf.room(ctx)["room_id"]
    shelf.rows(ctx, "INSERT INTO screen_cards VALUES (?, ?, ?, ?)", card, room, link_id, shelf.clock(ctx))
    return {"link_id": link_id, "shown": True}


def _waiting(ctx: ToolContext, room: str) -> list[int]:
    found = shelf.rows(ctx, "SELECT link_id FROM explain_queue WHERE room_id = ? AND status = 'waiting' ORDER BY position", room)  # fmt: skip
    return [row["link_id"] for row in found]
