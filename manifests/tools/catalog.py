"""Catalog: what viewers ask about an item. Reads only."""

from __future__ import annotations

from typing import Any

import shelf

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext

MOST_FOUND = 5


async def get_product(link_id: int, ctx: ToolContext) -> dict[str, Any]:
    """Everything on one link that may be said on air."""
    item = shelf.link(ctx, link_id)
    return {
        "link_id": link_id,
        "name": shelf.title(ctx, item),
        "category": item["category"],
        "price": item["price"],
        "list_price": item["list_price"],
        "stock": item["stock"],
        "specs": item["specs"],
        "selling_points": item["selling_points"],
        "caution": item["caution"],
        "options": [choice["option"] for choice in shelf.options(ctx, item["product_id"])],
        "warranty_months": item["warranty_months"],
    }


async def search_products(query: str, ctx: ToolContext, max_price: float | None = None) -> dict[str, Any]:
    """Links of the room that fit the words, best first; all words count the same."""
    terms = set(shelf.words(query))
    found = []
    for item in shelf.rows(
        ctx,
        "SELECT l.link_id, p.* FROM room_links AS l JOIN products AS p USING (product_id) WHERE l.room_id = ? "
        "ORDER BY l.link_id",
        shelf.room(ctx)["room_id"],
    ):
        if max_price is not None and item["price"] > max_price:
            continue
        text = " ".join(str(item[key]) for key in ("name", "name_zh", "category", "selling_points", "specs"))
        known = " " + " ".join(shelf.words(text))
        score = sum(1 for term in terms if f" {term}" in known)
        if score:
            found.append((-score, item["link_id"], item))
    found.sort(key=lambda entry: entry[:2])
    keys = ("link_id", "price", "stock")
    return {
        "links": [
            {"name": shelf.title(ctx, item)} | {key: item[key] for key in keys} for _, _, item in found[:MOST_FOUND]
        ]
    }


async def compare_products(link_ids: list[int], ctx: ToolContext) -> dict[str, Any]:
    """The same facts of two to four links side by side."""
    items = [shelf.link(ctx, number) for number in link_ids]
    keys = ("link_id", "price", "stock", "specs", "selling_points", "caution")
    return {"links": [{"name": shelf.title(ctx, item)} | {key: item[key] for key in keys} for item in items]}


async def check_stock(link_id: int, ctx: ToolContext, option: str | None = None) -> dict[str, Any]:
    """What is left of a link, or of one option of it."""
    item = shelf.link(ctx, link_id)
    chosen = shelf.option_of(ctx, item, option)
    return {
        "link_id": link_id,
        "option": chosen["option"],
        "stock": chosen["stock"],
        "price": chosen["price"],
        "other_options": [
            {"option": choice["option"], "stock": choice["stock"]}
            for choice in shelf.options(ctx, item["product_id"])
            if choice["option"] != chosen["option"] and choice["stock"]
        ],
    }


async def get_delivery(link_id: int, ctx: ToolContext, region: str | None = None) -> dict[str, Any]:
    """When a link leaves and, for a region, how long it takes and what is added."""
    item = shelf.link(ctx, link_id)
    answer = {
        "link_id": link_id,
        "ships_from": item["ships_from"],
        "ships_within_h": item["ships_within_h"],
        "freight": item["freight"],
    }
    if region is None:
        return answer
    found = shelf.rows(
        ctx,
        "SELECT * FROM regions WHERE lower(region) = lower(?) OR instr(?, name_zh) > 0 OR instr(lower(?), lower(region)) > 0",
        region,
        region,
        region,
    )
    if not found:
        raise ToolError(f"the region {region!r} is not known; ask for the province")
    keys = ("region", "days_min", "days_max", "surcharge", "note")
    return answer | {key: found[0][key] for key in keys if found[0][key] is not None}


async def get_return_policy(link_id: int, ctx: ToolContext) -> dict[str, Any]:
    """Returns, exchanges and warranty of a link."""
    item = shelf.link(ctx, link_id)
    policy = shelf.rows(ctx, "SELECT * FROM policies WHERE category = ?", item["category"])[0]
    condition = policy["condition_zh"] if shelf.room(ctx)["language"] == "zh" else policy["condition"]
    return {
        "link_id": link_id,
        "no_reason_days": policy["no_reason_days"],
        "exchange_days": policy["exchange_days"],
        "condition": condition,
        "return_freight": policy["return_freight"],
        "warranty_months": item["warranty_months"],
    }
