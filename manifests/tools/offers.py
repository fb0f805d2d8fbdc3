"""Offers: coupons, bundles and what something costs in the end."""

from __future__ import annotations

import json
from typing import Any

import shelf

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext

#: Orders from this many yuan ship free; below, freight is added once.
FREE_FROM = 59
FREIGHT = 8


async def list_coupons(ctx: ToolContext, link_id: int | None = None) -> dict[str, Any]:
    """Coupons that can still be claimed in the room and, for a link, apply to its category."""
    item = shelf.link(ctx, link_id) if link_id is not None else None
    found = claimable(ctx, item)
    return {
        "coupons": [
            {
                "coupon_id": row["coupon_id"],
                "title": title(ctx, row),
                "kind": row["kind"],
                "value": row["value"],
                "threshold": row["threshold"],
                "audience": row["audience"],
                "valid_until": row["valid_until"][:16].replace("T", " "),
            }
            for row in found
        ]
    }


def claimable(ctx: ToolContext, item: dict[str, Any] | None, *, most: int = -1) -> list[dict[str, Any]]:
    """The first `most` coupons that can still be claimed in the room and apply to a product; the one that asks least
    comes first."""
    room = shelf.room(ctx)["room_id"]
    category = item["category"] if item is not None else None
    return shelf.rows(
        ctx,
        "SELECT * FROM coupons WHERE (room_id IS NULL OR room_id = ?) AND remaining > 0 "
        "AND valid_until >= (SELECT clock FROM live_state WHERE room_id = ?) "
        "AND (? IS NULL OR category IS NULL OR category = ?) ORDER BY threshold, coupon_id LIMIT ?",
        room,
        room,
        category,
        category,
        most,
    )


def title(ctx: ToolContext, coupon: dict[str, Any]) -> str:
    """The coupon's name in the room's language."""
    return coupon["title_zh"] if shelf.room(ctx)["language"] == "zh" else coupon["title"]


async def issue_coupon(coupon_id: str, ctx: ToolContext) -> dict[str, Any]:
    """Grant a coupon to the viewer, within what is left and what each viewer may have."""
    row = _coupon(ctx, coupon_id)
    buyer = shelf.viewer(ctx)
    _check_audience(ctx, row, buyer)
    owned = shelf.rows(ctx, "SELECT count(*) AS n FROM coupon_grants WHERE viewer_id = ? AND coupon_id = ?", buyer["viewer_id"], row["coupon_id"])  # fmt: skip
    if owned[0]["n"] >= row["per_viewer"]:
        raise ToolError("the viewer has claimed this coupon already")
    if row["remaining"] < 1:
        raise ToolError("the coupon has run out")
    grant = shelf.next_id(ctx, "coupon_grants", "grant_id", "G")
    shelf.rows(ctx, "UPDATE coupons SET remaining = remaining - 1 WHERE coupon_id = ?", row["coupon_id"])
    shelf.rows(ctx, "INSERT INTO coupon_grants VALUES (?, ?, ?, ?)", grant, buyer["viewer_id"], row["coupon_id"], shelf.clock(ctx)[:10])  # fmt: skip
    return {"coupon_id": row["coupon_id"], "granted": True, "valid_until": row["valid_until"][:16].replace("T", " ")}


async def quote_price(
    link_id: int, ctx: ToolContext, quantity: int = 1, option: str | None = None, coupon_id: str | None = None
) -> dict[str, Any]:
    """What an order of one link costs, coupon and freight counted."""
    item = shelf.link(ctx, link_id)
    unit = shelf.option_of(ctx, item, option)["price"]
    subtotal = unit * quantity
    discount: float = 0
    if coupon_id is not None:
        row = _coupon(ctx, coupon_id)
        if row["category"] not in (None, item["category"]):
            raise ToolError(f"the coupon is for {row['category']} only")
        if subtotal < row["threshold"]:
            raise ToolError(f"the coupon needs {row['threshold']} yuan; the order is {subtotal}")
        discount = row["value"] if row["kind"] == "amount" else subtotal * row["value"] / 100
    freight = 0 if subtotal >= FREE_FROM else FREIGHT
    return {
        "link_id": link_id,
        "unit_price": unit,
        "quantity": quantity,
        "subtotal": subtotal,
        "discount": shelf.yuan(discount),
        "freight": freight,
        "total": shelf.yuan(subtotal - discount + freight),
    }


async def list_bundles(ctx: ToolContext, link_id: int | None = None) -> dict[str, Any]:
    """Bundles of the room, or those that hold one link."""
    found = shelf.rows(ctx, "SELECT * FROM bundles WHERE room_id = ? ORDER BY bundle_id", shelf.room(ctx)["room_id"])
    out = []
    for row in found:
        links = json.loads(row["link_ids"])
        if link_id is None or link_id in links:
            prices = {"full_price": row["full_price"], "bundle_price": row["bundle_price"]}
            saves = row["full_price"] - row["bundle_price"]
            out.append(
                {"bundle_id": row["bundle_id"], "title": row["title"], "link_ids": links, **prices, "saves": saves}
            )
    return {"bundles": out}


def _coupon(ctx: ToolContext, coupon_id: str) -> dict[str, Any]:
    found = shelf.rows(
        ctx,
        "SELECT * FROM coupons WHERE coupon_id = ? AND (room_id IS NULL OR room_id = ?)",
        coupon_id,
        shelf.room(ctx)["room_id"],
    )
    if not found:
        raise ToolError(f"there is no coupon {coupon_id} in this room")
    if found[0]["valid_until"] < shelf.clock(ctx):
        raise ToolError("the coupon is over")
    return found[0]


def _check_audience(ctx: ToolContext, row: dict[str, Any], buyer: dict[str, Any]) -> None:
    """`follower` is every viewer that the shop knows."""
    if row["audience"] == "gold" and buyer["member_level"] != "gold":
        raise ToolError("the coupon is for gold members")
    if row["audience"] == "new":
        joined = shelf.rows(ctx, "SELECT joined FROM viewers WHERE viewer_id = ?", buyer["viewer_id"])[0]["joined"]
        if joined != shelf.clock(ctx)[:10]:
            raise ToolError("the coupon is for viewers who joined today")
