"""Products and their variants; arithmetic."""

import ast
import json
import operator

from store import load

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


def get_product_details(product_id: str, ctx):
    """A product with all its variants."""
    return load(ctx, "products", product_id)


def get_item_details(item_id: str, ctx):
    """One variant with the product's name."""
    return variant(ctx, item_id)[1]


def variant(ctx, item_id):
    """(product id, variant) of an item id."""
    for product_id, name, variants in ctx.world.connection().execute("SELECT product_id, name, variants FROM products"):
        found = json.loads(variants).get(item_id)
        if found is not None:
            return product_id, {**found, "name": name}
    raise LookupError(f"no item {item_id}")


def calculate(expression: str):
    """The value, to two decimals, as text."""
    return str(round(float(_value(ast.parse(expression, mode="eval").body)), 2))


def _value(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.operand))
    raise ValueError("only numbers and + - * / ( )")
