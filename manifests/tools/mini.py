"""Mini: the live-stream tools with results that fit a small model's context."""

from __future__ import annotations

from typing import Any

import offers
import shelf
import stage

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext

NO_ANSWER = "no answer found"
#: Fewer points than this (see `search_faq` of a world) mean that only a common word was shared.
LEAST_SCORE = 5.0


async def get_product(ctx: ToolContext, link_id: int | None = None) -> dict[str, Any]:
    """Name, price, stock, a coupon and the first facts of a link; of the link on air when no number is given."""
    number = link_id if link_id is not None else stage.on_air(ctx)
    item = shelf.link(ctx, number)
    coupons = offers.claimable(ctx, item, most=1)
    found = {"link": number, "name": shelf.title(ctx, item), "price": item["price"], "stock": item["stock"]}
    facts = "; ".join(f"{name} {value}" for name, value in list(item["specs"].items())[:4])
    return found | {"facts": facts, "coupon": offers.title(ctx, coupons[0]) if coupons else "none"}


async def search_faq(query: str, ctx: ToolContext) -> str:
    """The answer that fits best."""
    if ctx.world is None:
        raise ToolError("the shop's tables are not connected")
    found = ctx.world.search_faq(query, where={}, top_k=1)
    return found[0]["answer"] if found and found[0]["score"] >= LEAST_SCORE else NO_ANSWER


async def queue_link(link_id: int, ctx: ToolContext) -> dict[str, Any]:
    """Have a link presented next."""
    await stage.queue_link(link_id, "next", ctx)
    return {"link": link_id, "next": True}
