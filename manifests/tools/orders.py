"""Orders: what belongs to one viewer. Nobody sees or changes another's order."""

from __future__ import annotations

from datetime import date
from typing import Any

import shelf

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext

LAST_ORDERS = 3


async def get_order(ctx: ToolContext, order_id: str | None = None) -> dict[str, Any]:
    """One order of the viewer, or the latest ones; PermissionError for another's."""
    buyer = shelf.viewer(ctx)["viewer_id"]
    sql = (
        "SELECT o.order_id, o.viewer_id, p.name, p.name_zh, p.category, v.option, o.quantity, o.paid, o.status, "
        "o.ordered_on, o.delivered_on, o.carrier, o.tracking_no FROM orders AS o JOIN products AS p USING (product_id) "
        "LEFT JOIN variants AS v ON v.sku = o.sku "
    )
    if order_id is None:
        found = shelf.rows(ctx, sql + "WHERE o.viewer_id = ? ORDER BY o.ordered_on DESC, o.order_id DESC LIMIT ?", buyer, LAST_ORDERS)  # fmt: skip
    else:
        found = shelf.rows(ctx, sql + "WHERE o.order_id = ?", order_id.strip().upper())
        if not found:
            raise ToolError(f"there is no order {order_id}")
        if found[0]["viewer_id"] != buyer:
            raise PermissionError("the order belongs to another viewer")
    chinese = shelf.room(ctx)["language"] == "zh"
    return {"orders": [_shown(row, chinese) for row in found]}


def _shown(row: dict[str, Any], chinese: bool) -> dict[str, Any]:
    row["product"] = row.pop("name_zh") if chinese else row["name"]
    return {
        key: value for key, value in row.items() if value is not None and key not in ("viewer_id", "name", "name_zh")
    }


async def create_ticket(order_id: str, kind: str, reason: str, ctx: ToolContext) -> dict[str, Any]:
    """Open a case for customer service; ToolError where the order's state or age does not allow it."""
    order = (await get_order(ctx, order_id))["orders"][0]
    _check_window(ctx, order, kind)
    if shelf.rows(
        ctx, "SELECT 1 FROM tickets WHERE order_id = ? AND kind = ? AND status = 'open'", order["order_id"], kind
    ):
        raise ToolError(f"a case of kind {kind} is open for this order already")
    ticket = shelf.next_id(ctx, "tickets", "ticket_id", "T")
    opened = shelf.clock(ctx)[:10]
    shelf.rows(
        ctx,
        "INSERT INTO tickets VALUES (?, ?, ?, ?, ?, 'open', ?)",
        *(ticket, order["order_id"], shelf.viewer(ctx)["viewer_id"], kind, reason, opened),
    )
    return {"ticket_id": ticket, "order_id": order["order_id"], "kind": kind, "status": "open"}


def _check_window(ctx: ToolContext, order: dict[str, Any], kind: str) -> None:
    """Returns, exchanges and repairs begin with delivery; the first two end with the days of the category."""
    if kind not in ("return", "exchange", "repair"):
        return
    if order["status"] != "delivered":
        raise ToolError(f"the order is {order['status']}: a {kind} can begin once it is delivered")
    if kind == "repair":
        return
    policy = shelf.rows(
        ctx, "SELECT no_reason_days, exchange_days FROM policies WHERE category = ?", order["category"]
    )[0]
    allowed = policy["no_reason_days"] if kind == "return" else policy["exchange_days"]
    age = (date.fromisoformat(shelf.clock(ctx)[:10]) - date.fromisoformat(order["delivered_on"])).days
    if age > allowed:
        raise ToolError(f"a {kind} is possible within {allowed} days of delivery; it has been {age}")


async def add_to_cart(link_id: int, ctx: ToolContext, option: str | None = None, quantity: int = 1) -> dict[str, Any]:
    """Put a link into the viewer's cart; they still pay in the app."""
    item = shelf.link(ctx, link_id)
    chosen = shelf.option_of(ctx, item, option)
    if chosen["stock"] < quantity:
        raise ToolError(f"only {chosen['stock']} are left")
    cart = shelf.next_id(ctx, "carts", "cart_id", "K")
    buyer, room = shelf.viewer(ctx)["viewer_id"], shelf.room(ctx)["room_id"]
    shelf.rows(
        ctx, "INSERT INTO carts VALUES (?, ?, ?, ?, ?, ?)", cart, buyer, room, link_id, chosen["option"], quantity
    )
    return {"link_id": link_id, "option": chosen["option"], "quantity": quantity, "in_cart": True}


async def hand_to_service(topic: str, ctx: ToolContext, order_id: str | None = None) -> dict[str, Any]:
    """Tell customer service that this viewer waits for a person."""
    if order_id is not None:
        await get_order(ctx, order_id)
    ticket = shelf.next_id(ctx, "tickets", "ticket_id", "T")
    known = ctx.context.get("viewer") or {}
    shelf.rows(
        ctx,
        "INSERT INTO tickets VALUES (?, ?, ?, 'handover', ?, 'open', ?)",
        *(ticket, order_id, known.get("viewer_id"), topic, shelf.clock(ctx)[:10]),
    )
    return {"ticket_id": ticket, "hours": "9:00 to 23:00", "where": "the headset icon in the app"}
