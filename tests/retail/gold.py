"""What a list of gold actions must leave in the shop's database, worked out on plain dicts, apart from the tools."""

from __future__ import annotations

import copy
from typing import Any

WRITES = {
    "cancel_pending_order",
    "modify_pending_order_items",
    "modify_pending_order_address",
    "exchange_delivered_order_items",
    "return_delivered_order_items",
    "modify_user_address",
}


def expected(database: dict[str, Any], actions: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """{"orders": {id: row}, "users": {id: row}} of every row that the actions change, as it must be afterwards."""
    orders: dict[str, Any] = {}
    users: dict[str, Any] = {}
    for action in actions:
        name, a = action["name"], action["arguments"]
        if name == "modify_user_address":
            user = users.setdefault(a["user_id"], copy.deepcopy(database["users"][a["user_id"]]))
            user["address"] = {key: value for key, value in a.items() if key != "user_id"}
        elif name in WRITES:
            order = orders.setdefault(a["order_id"], copy.deepcopy(database["orders"][a["order_id"]]))
            user = users.setdefault(order["user_id"], copy.deepcopy(database["users"][order["user_id"]]))
            _change(database, order, user, name, a)
    return {"orders": orders, "users": users}


def _change(
    database: dict[str, Any], order: dict[str, Any], user: dict[str, Any], name: str, a: dict[str, Any]
) -> None:
    if name == "cancel_pending_order":
        order["status"] = "cancelled"
        for payment in [p for p in order["payment_history"] if p["transaction_type"] == "payment"]:
            order["payment_history"].append({**payment, "transaction_type": "refund"})
            _credit(user, payment["payment_method_id"], payment["amount"])
    elif name == "modify_pending_order_address":
        order["address"] = {key: value for key, value in a.items() if key != "order_id"}
    elif name == "return_delivered_order_items":
        order["status"] = "return requested"
    elif name == "exchange_delivered_order_items":
        order["status"] = "exchange requested"
    elif name == "modify_pending_order_items":
        total = 0.0
        for old_id, new_id in zip(a["item_ids"], a["new_item_ids"], strict=True):
            item = next(i for i in order["items"] if i["item_id"] == old_id)
            new = database["products"][item["product_id"]]["variants"][new_id]
            total += new["price"] - item["price"]
            item.update(item_id=new_id, price=new["price"], options=new["options"])
        total = round(total, 2)
        order["status"] = "pending (item modified)"
        order["payment_history"].append(
            {
                "transaction_type": "payment" if total > 0 else "refund",
                "amount": abs(total),
                "payment_method_id": a["payment_method_id"],
            }
        )
        _credit(user, a["payment_method_id"], -total)


def _credit(user: dict[str, Any], method_id: str, amount: float) -> None:
    method = user["payment_methods"][method_id]
    if method["source"] == "gift_card":
        method["balance"] = round(method["balance"] + amount, 2)


def usable(task: dict[str, Any]) -> bool:
    """Whether a task's gold actions authenticate first, change something, and need no person."""
    names = [action["name"] for action in task["evaluation_criteria"]["actions"]]
    return (
        bool(names)
        and names[0].startswith("find_user_id")
        and any(name in WRITES for name in names)
        and "transfer_to_human_agents" not in names
        and task["id"] not in DANGLING
    )


#: Tasks whose gold actions name products or orders that the published database does not hold.
DANGLING = {"2", "3", "4"}
