"""A small project of somebody's own: one catalog file, one tool on it, one skill, one family. Tests change one file of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

HARNESS = """\
apiVersion: harnessctl/v1
kind: Harness
name: shop
version: 1.0.0
include: {skills: [answer], tools: [shop], hooks: [shop]}
prompt: shop
world: shop
limits:
  max_rounds: {value: 4, range: [3, 6]}
  reply_max_chars: {value: 60, range: [40, 80]}
require_skill: reply
"""
PROMPT = """\
apiVersion: harnessctl/v1
kind: PromptPipeline
name: shop
inputs:
  type: object
  properties:
    items: {type: [array, "null"]}
    history: {type: [array, "null"], items: {type: object, required: [speaker, text]}}
blocks:
  - {id: base, template: "You keep a shop. Load a skill, look things up, then reply."}
"""
TOOLS = """\
apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_item
    version: 1.0.0
    group: retrieval
    tags: [price]
    description: Returns an item by its number.
    parameters:
      type: object
      properties: {item: {type: integer, minimum: 1}}
      required: [item]
      additionalProperties: false
    result: {type: object, required: [name, price]}
    run: {python: "shop:get_item"}
  - name: load_skill
    version: 1.0.0
    group: flow-control
    description: Loads a skill.
    parameters: {type: object, properties: {skill: {type: string}}, required: [skill], additionalProperties: false}
    run: {builtin: load_skill}
"""
CODE = '''\
"""Shop: look-ups in the catalog."""


async def get_item(item, ctx):
    """An item by its number."""
    row = ctx.world.connection().execute("SELECT name, price FROM items WHERE item_id = ?", [item]).fetchone()
    return {"name": row["name"], "price": row["price"]}
'''
HOOKS = """\
apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: looked-up
    version: 1.0.0
    event: stop
    enforces: [answer#look]
    check: {grounded_numbers: {ignore_below: 3}}
    otherwise: {action: retry, max_retries: 1, exhausted: block, message: {text: Use the price of the result.}}
"""
SKILL = """\
---
name: answer
description: Answers questions on items.
metadata: {version: "1.0.0", kind: reply}
---
## Rules

- Look the item up with `get_item`. {#look .protected}
- Be brief. {#brief}
"""
WORLD = """\
apiVersion: harnessctl/v1
kind: World
name: shop
version: 1.0.0
tables:
  items: {file: shop/items.csv, key: [item_id], types: {price: real}, required: [name, price]}
  orders: {file: shop/orders.csv, key: [order_id], mutable: true}
context:
  items: {sql: SELECT item_id FROM items ORDER BY item_id}
simulation:
  mix: {question: 3, chat: 1}
  families: [shop/families/shop.yaml]
  history: 0.5
  faults: {timeout: 0.1}
  chatter:
    history: {en: [[nice shop, Thank you.]]}
"""
ITEMS = """\
item_id,name,price
1,Kettle,39.5
2,Teapot,120
3,Cup,12
"""
ORDERS = """\
order_id,item_id,state
A1,1,paid
"""
FAMILIES = """\
apiVersion: harnessctl/v1
kind: Families
harness: shop
families:
  - id: price
    intent: question
    draw: SELECT item_id, name, price FROM items
    messages:
      en: ["how much is item {item_id}?", "price of the {name}, number {item_id}"]
    gold:
      skills: [answer]
      calls: [{tool: get_item, arguments: {item: "{item_id}"}}]
      facts: [{any: ["{price} yuan"], source: get_item}]
      claims: [for free]
      replies:
        en: ["Item {item_id} is {price} yuan."]
      fallbacks:
        en: ["Please look at item {item_id} in the list."]
  - id: hello
    intent: chat
    draw: SELECT 1 AS one
    messages:
      en: [hello, good evening]
    gold:
      skills: [answer]
      replies:
        en: [Welcome to the shop!]
"""

Write = Callable[[Mapping[str, str | bytes]], Path]

FILES = {
    "harness": "manifests/harness.yaml",
    "prompt": "manifests/prompts/shop.yaml",
    "tools": "manifests/tools/shop.yaml",
    "code": "manifests/tools/shop.py",
    "hooks": "manifests/hooks/shop.yaml",
    "skill": "skills/answer/SKILL.md",
    "world": "manifests/worlds/shop.yaml",
    "items": "manifests/worlds/shop/items.csv",
    "orders": "manifests/worlds/shop/orders.csv",
    "families": "manifests/worlds/shop/families/shop.yaml",
}
TEXTS = {
    "harness": HARNESS,
    "prompt": PROMPT,
    "tools": TOOLS,
    "code": CODE,
    "hooks": HOOKS,
    "skill": SKILL,
    "world": WORLD,
    "items": ITEMS,
    "orders": ORDERS,
    "families": FAMILIES,
}


def own_shop(project: Write, *, more: Mapping[str, str | bytes] | None = None, **changed: str | bytes) -> Path:
    """The project's root, after some of its files were replaced (by the names of FILES) or added (by path)."""
    texts: dict[str, str | bytes] = {**TEXTS, **changed}
    return project({**{FILES[name]: text for name, text in texts.items()}, **(more or {})})


def changed(text: str, *swaps: tuple[str, str]) -> str:
    """`text` with each first member, which is in it, replaced by the second once."""
    for old, new in swaps:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
