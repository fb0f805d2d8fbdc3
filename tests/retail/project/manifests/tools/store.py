"""Rows of the shop's tables as dicts, read and written back whole."""

import json

JSON_COLUMNS = {
    "products": {"variants"},
    "users": {"name", "address", "payment_methods", "orders"},
    "orders": {"address", "items", "fulfillments", "payment_history"},
}
KEYS = {"products": "product_id", "users": "user_id", "orders": "order_id"}


def load(ctx, table, key):
    """The row of `table` with that key; LookupError when there is none."""
    cursor = ctx.world.connection().execute(f"SELECT * FROM {table} WHERE {KEYS[table]} = ?", (key,))
    row = cursor.fetchone()
    if row is None:
        raise LookupError(f"no {table[:-1]} {key}")
    names = [column[0] for column in cursor.description]
    record = {n: v for n, v in zip(names, tuple(row), strict=True) if v is not None}
    for column in JSON_COLUMNS[table]:
        if isinstance(record.get(column), str):
            record[column] = json.loads(record[column])
    return record


def save(ctx, table, record):
    """Write a row back: columns that the table lacks (a return's items, a reason) are kept in `session`."""
    connection = ctx.world.connection()
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = {
        name: json.dumps(record[name]) if name in JSON_COLUMNS[table] else record[name]
        for name in columns
        if name in record and name != KEYS[table]
    }
    sets = ", ".join(f"{name} = ?" for name in values)
    key = record[KEYS[table]]
    connection.execute(f"UPDATE {table} SET {sets} WHERE {KEYS[table]} = ?", (*values.values(), key))
    connection.commit()
    extra = {name: value for name, value in record.items() if name not in columns}
    if extra:
        ctx.session.setdefault("extra", {}).setdefault(key, {}).update(extra)


def owned_order(ctx, order_id):
    """The order, if it belongs to the customer who was found in this session."""
    order = load(ctx, "orders", order_id)
    if order["user_id"] != ctx.session.get("user_id"):
        raise PermissionError("this order belongs to another customer")
    return order
