"""Shelf: the room of a request and its links, as every tool of the host reads them."""

from __future__ import annotations

import json
import re
from typing import Any

from harnessctl.errors import ToolError
from harnessctl.runtime.protocols import ToolContext

#: SQLite takes no larger number, and no room has so many links.
MOST_LINK_ID = 2**31
_TERM = re.compile(r"[\u4e00-\u9fff]+|[a-z0-9]+")


def rows(ctx: ToolContext, sql: str, *values: Any) -> list[dict[str, Any]]:
    """The rows of a query on the world's tables; ToolError where the harness runs without a world."""
    if ctx.world is None:
        raise ToolError("the shop's tables are not connected")
    cursor = ctx.world.connection().execute(sql, values)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def room(ctx: ToolContext) -> dict[str, Any]:
    """The room that the request came from."""
    found = ctx.context.get("room")
    if not found:
        raise ToolError("there is no such live room")
    return found


def viewer(ctx: ToolContext) -> dict[str, Any]:
    """The viewer who wrote; PermissionError where the shop does not know them."""
    found = ctx.context.get("viewer")
    if not found:
        raise PermissionError("the viewer is not signed in to the shop")
    return found


def link(ctx: ToolContext, link_id: int) -> dict[str, Any]:
    """The product behind a link of the room, lists and specifications decoded; ToolError for a number it does not have."""
    found = rows(
        ctx,
        "SELECT l.link_id, l.badge, p.* FROM room_links AS l JOIN products AS p USING (product_id) "
        "WHERE l.room_id = ? AND l.link_id = ?",
        room(ctx)["room_id"],
        min(link_id, MOST_LINK_ID),
    )
    if not found:
        raise ToolError(f"there is no link {link_id} in this room")
    item = found[0]
    item["specs"] = json.loads(item["specs"])
    item["selling_points"] = item["selling_points"].split(";")
    return item


def title(ctx: ToolContext, item: dict[str, Any]) -> str:
    """The product's name in the room's language."""
    return item["name_zh"] if room(ctx)["language"] == "zh" else item["name"]


def options(ctx: ToolContext, product_id: str) -> list[dict[str, Any]]:
    """The options (size, colour) of a product; none for one that comes in one form."""
    return rows(ctx, "SELECT option, price, stock FROM variants WHERE product_id = ? ORDER BY sku", product_id)


def option_of(ctx: ToolContext, item: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    """Price and stock of the option that `wanted` names, or of the product itself; ToolError when no option fits."""
    choices = options(ctx, item["product_id"])
    if wanted is None or not choices:
        return {"option": None, "price": item["price"], "stock": item["stock"]}
    terms = set(words(wanted))
    fitting = [choice for choice in choices if terms <= set(words(choice["option"]))]
    if len(fitting) != 1:
        names = ", ".join(choice["option"] for choice in fitting or choices)
        raise ToolError(f"{'more than one' if fitting else 'no'} option fits {wanted!r}; options: {names}")
    return fitting[0]


def words(text: str) -> list[str]:
    """The words of a text, lower case; a run of Chinese is its pairs of characters."""
    out: list[str] = []
    for term in _TERM.findall(text.lower()):
        if term[0] < "\u4e00":
            out.append(term)
        else:
            out += [term[i : i + 2] for i in range(len(term) - 1)] or [term]
    return out


def yuan(value: float) -> int | float:
    """An amount of money to the fen, whole yuan without a fraction."""
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def next_id(ctx: ToolContext, table: str, column: str, letter: str) -> str:
    """The id after the last one of a table whose ids are a letter and four digits."""
    last = rows(ctx, f"SELECT max({column}) AS last FROM {table}")[0]["last"]
    return f"{letter}{int(last[1:]) + 1 if last else 1:04d}"


def clock(ctx: ToolContext) -> str:
    """The time in the room, ISO 8601."""
    return rows(ctx, "SELECT clock FROM live_state WHERE room_id = ?", room(ctx)["room_id"])[0]["clock"]
