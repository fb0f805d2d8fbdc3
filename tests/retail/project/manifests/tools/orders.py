"""Orders: their state, and every change that a customer may ask for."""

from catalog import variant
from store import load, owned_order, save


def get_order_details(order_id: str, ctx):
    """The order as it stands."""
    return owned_order(ctx, order_id)


def cancel_pending_order(order_id: str, reason: str, ctx):
    """Cancel, and refund each payment the way it came."""
    order = _in_state(ctx, order_id, "pending")
    for payment in list(order["payment_history"]):
        _refund(ctx, order, payment["payment_method_id"], payment["amount"])
    order.update(status="cancelled", cancel_reason=reason)
    save(ctx, "orders", order)
    return order


def modify_pending_order_items(order_id: str, item_ids: list, new_item_ids: list, payment_method_id: str, ctx):
    """Replace items; the difference in price is paid or refunded through the given method."""
    order = _in_state(ctx, order_id, "pending")
    changes = _changes(ctx, order, item_ids, new_item_ids)
    difference = round(sum(new["price"] - old["price"] for old, new in changes), 2)
    _settle(ctx, order, payment_method_id, difference)
    for old, new in changes:
        old.update(item_id=new["item_id"], price=new["price"], options=new["options"])
    order["status"] = "pending (item modified)"
    save(ctx, "orders", order)
    return order


def exchange_delivered_order_items(order_id: str, item_ids: list, new_item_ids: list, payment_method_id: str, ctx):
    """Ask for an exchange; nothing is paid until the items are back."""
    order = _in_state(ctx, order_id, "delivered")
    changes = _changes(ctx, order, item_ids, new_item_ids)
    difference = round(sum(new["price"] - old["price"] for old, new in changes), 2)
    _method(ctx, order, payment_method_id, difference)
    order.update(
        status="exchange requested",
        exchange_items=sorted(item_ids),
        exchange_new_items=sorted(new_item_ids),
        exchange_payment_method_id=payment_method_id,
        exchange_price_difference=difference,
    )
    save(ctx, "orders", order)
    return order


def return_delivered_order_items(order_id: str, item_ids: list, payment_method_id: str, ctx):
    """Ask for a return; the refund goes to the order's own method or to a gift card."""
    order = _in_state(ctx, order_id, "delivered")
    _items(order, item_ids)
    _method(ctx, order, payment_method_id, 0)
    own = order["payment_history"][0]["payment_method_id"]
    if payment_method_id != own and not payment_method_id.startswith("gift_card"):
        raise ValueError("the refund goes to the order's own payment method or to a gift card")
    order.update(status="return requested", return_items=sorted(item_ids), return_payment_method_id=payment_method_id)
    save(ctx, "orders", order)
    return order


def modify_pending_order_address(order_id: str, ctx, **address):
    """Send a pending order elsewhere."""
    order = owned_order(ctx, order_id)
    if not order["status"].startswith("pending"):
        raise ValueError(f"the order is {order['status']}, not pending")
    order["address"] = address
    save(ctx, "orders", order)
    return order


def _in_state(ctx, order_id, state):
    order = owned_order(ctx, order_id)
    if order["status"] != state:
        raise ValueError(f"the order is {order['status']}, not {state}")
    return order


def _items(order, item_ids):
    """The order's items of these ids, each taken once."""
    left = list(order["items"])
    out = []
    for item_id in item_ids:
        item = next((i for i in left if i["item_id"] == item_id), None)
        if item is None:
            raise LookupError(f"item {item_id} is not in the order")
        left.remove(item)
        out.append(item)
    return out


def _changes(ctx, order, item_ids, new_item_ids):
    if len(item_ids) != len(new_item_ids):
        raise ValueError("as many new items as old ones are needed")
    pairs = []
    for item, new_id in zip(_items(order, item_ids), new_item_ids, strict=True):
        product_id, new = variant(ctx, new_id)
        if product_id != item["product_id"] or not new["available"]:
            raise ValueError(f"{new_id} is not an available variant of {item['name']}")
        pairs.append((item, new))
    return pairs


def _method(ctx, order, payment_method_id, amount):
    user = load(ctx, "users", order["user_id"])
    method = user["payment_methods"].get(payment_method_id)
    if method is None:
        raise LookupError("no such payment method")
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise ValueError("the gift card's balance is too low")
    return user, method


def _settle(ctx, order, payment_method_id, difference):
    user, method = _method(ctx, order, payment_method_id, difference)
    kind = "payment" if difference > 0 else "refund"
    order["payment_history"].append(
        {"transaction_type": kind, "amount": abs(difference), "payment_method_id": payment_method_id}
    )
    if method["source"] == "gift_card":
        method["balance"] = round(method["balance"] - difference, 2)
        save(ctx, "users", user)


def _refund(ctx, order, payment_method_id, amount):
    user, method = _method(ctx, order, payment_method_id, 0)
    order["payment_history"].append(
        {"transaction_type": "refund", "amount": amount, "payment_method_id": payment_method_id}
    )
    if method["source"] == "gift_card":
        method["balance"] = round(method["balance"] + amount, 2)
        save(ctx, "users", user)
