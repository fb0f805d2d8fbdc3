"""The request that every runtime carries out: a 5,000-token system prompt, ten tools, a skill and a product to look up.

Imports nothing but the standard library, so that every peer's environment can load it. Tools are typed functions with
Google docstrings, which all peers take; their JSON Schemas are made from the same source.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

SKILL = (
    "Answer questions on one item. Look the item up by its link id first; quote price and stock exactly as they are "
    "given; never guess, and say so when the catalogue has no answer. "
) * 11
PRODUCT = json.dumps(
    {
        "link_id": 3,
        "title": "Aurora 2 desk lamp",
        "price": 39.9,
        "currency": "EUR",
        "stock": 12,
        "specs": {"watt": 9, "lumen": 800},
        "notes": "Dimmable, with a clamp and a foot; the cable is two metres long. " * 6,
    }
)
SYSTEM = "\n".join(
    f"{number}. You are the shop's assistant. Follow the policy that applies, load the skill that fits before you act, "
    "call one tool at a time, and answer briefly."
    for number in range(1, 136)
)[:20_000]
QUESTION = "Is the third item still available, and what does it cost?"
EXPECTED = "Aurora 2 desk lamp"

#: What the four hooks check: before and after each model call, before and after each tool call.
MAX_MESSAGE_CHARS = 4000
FORBIDDEN = ["guaranteed to", "best price ever", "100% safe"]
TRACEBACK = r"Traceback \(most recent call last\)"


async def load_skill(skill: str) -> str:
    """Load the instructions of a skill by its name before acting in its domain. Call it once per skill.

    Args:
        skill: Name of the skill, as listed in the system prompt.
    """
    return SKILL


async def get_product_info_by_link_id(link_id: int) -> str:
    """Return title, price, stock and specifications of the product behind a numbered link of the conversation.

    Args:
        link_id: The number of the link as it was shown to the customer, starting from 1.
    """
    return PRODUCT


async def search_products(query: str, category: str = "", max_price: float = 0.0, limit: int = 10) -> str:
    """Search the catalogue by free text and optional filters; returns the best matches with their link ids.

    Args:
        query: Free text to search for, in the customer's words.
        category: Category to restrict the search to; empty for all.
        max_price: Highest price in EUR; 0 for no limit.
        limit: How many results to return at most.
    """
    return "[]"


async def get_order(order_id: str) -> str:
    """Return one order with its lines, its payment state and its shipments.

    Args:
        order_id: The order's number, for example A-10293.
    """
    return "{}"


async def list_orders(customer_id: str, since: str = "", limit: int = 20) -> str:
    """List the orders of a customer, newest first, optionally only those placed since a day.

    Args:
        customer_id: The customer's number.
        since: First day to include, as YYYY-MM-DD; empty for all.
        limit: How many orders to return at most.
    """
    return "[]"


async def track_shipment(shipment_id: str, carrier: str = "") -> str:
    """Return the latest tracking events of a shipment from its carrier.

    Args:
        shipment_id: The shipment's number.
        carrier: The carrier's code where the number is ambiguous.
    """
    return "[]"


async def create_return(order_id: str, line: int, reason: str, keep_item: bool = False) -> str:
    """Open a return for one line of an order. Ask the customer for confirmation before calling this.

    Args:
        order_id: The order's number.
        line: The line within the order, starting from 1.
        reason: The customer's reason, in one sentence.
        keep_item: Whether the customer may keep the item.
    """
    return "{}"


async def issue_coupon(customer_id: str, percent: int, reason: str) -> str:
    """Issue a coupon to a customer as a gesture of goodwill, within the limits of the policy.

    Args:
        customer_id: The customer's number.
        percent: Discount in percent, 5 to 20.
        reason: Why the coupon is given, for the audit log.
    """
    return "{}"


async def handoff_to_human(queue: str, summary: str) -> str:
    """Hand the conversation over to a human agent and stop answering.

    Args:
        queue: The queue to hand over to: billing, shipping, product or other.
        summary: What the customer wants and what has been done, in at most five sentences.
    """
    return "{}"


async def search_faq(question: str, language: str = "en", top_k: int = 3) -> str:
    """Search the shop's frequently asked questions and return the best answers with their sources.

    Args:
        question: The question to look up.
        language: Language of the answers, as a two-letter code.
        top_k: How many answers to return.
    """
    return "[]"


Tool = Callable[..., Awaitable[str]]
TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (
        load_skill,
        get_product_info_by_link_id,
        search_products,
        get_order,
        list_orders,
        track_shipment,
        create_return,
        issue_coupon,
        handoff_to_human,
        search_faq,
    )
}
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def description(tool: Tool) -> str:
    """What the model reads of a tool."""
    return (inspect.getdoc(tool) or "").split("\n\nArgs:\n")[0]


def parameters(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    told = dict(re.findall(r"^\s+(\w+): (.+)$", (inspect.getdoc(tool) or "").split("\n\nArgs:\n")[1], re.M))
    taken = inspect.signature(tool).parameters
    return {
        "type": "object",
        "properties": {n: {"type": _TYPES[str(p.annotation)], "description": told[n]} for n, p in taken.items()},
        "required": [n for n, p in taken.items() if p.default is p.empty],
        "additionalProperties": False,
    }


def function_tools() -> list[dict[str, Any]]:
    """The tools as chat completions take them."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": description(tool), "parameters": parameters(tool)},
        }
        for name, tool in TOOLS.items()
    ]


def first_messages() -> list[dict[str, Any]]:
    """The messages of a request before its first model call."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
