"""A small shop with a world, families and tools that read and write it, for tests to change one file of."""

from __future__ import annotations

HARNESS = """\
apiVersion: harnessctl/v1
kind: Harness
name: shop
version: 1.0.0
include: {skills: ["*"], tools: ["*"], hooks: ["*"]}
prompt: shop
world: shop
limits:
  max_rounds: {value: 4, range: [2, 6], unit: rounds}
  reply_max_chars: {value: 120, range: [80, 200], unit: codepoints}
require_skill: reply
"""

PROMPT = """\
apiVersion: harnessctl/v1
kind: PromptPipeline
name: shop
inputs:
  type: object
  properties:
    room: {type: [object, "null"]}
blocks:
  - id: base
    pin: true
    template: |
      You answer customers of {{ room.name if room else 'a shop' }}. Load the skill that fits first.
  - id: rules
    heading: "Rules:"
    items:
      - {id: short, text: "Answer in at most 120 characters.", limit: reply_max_chars}
      - {id: polite, text: "Never argue with a customer."}
  - id: skills
    when: skills
    template: |
      {% for s in skills %}
      - {{ s.name }}: {{ s.description }}
      {% endfor %}
"""

TOOLS = """\
apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_price
    group: retrieval
    description: Gives the price in yuan and the stock of an article, by its number.
    parameters:
      type: object
      additionalProperties: false
      required: [article]
      properties:
        article: {type: integer, description: The number of the article.}
    run: {python: "shop_tools:get_price"}
  - name: list_articles
    group: retrieval
    description: Lists all articles that the shop offers.
    parameters: {type: object, additionalProperties: false, properties: {}}
    run: {python: "shop_tools:list_articles"}
  - name: reserve
    group: commerce
    effect: write
    description: Reserves an article for the customer.
    parameters:
      type: object
      additionalProperties: false
      required: [article]
      properties:
        article: {type: integer, description: The number of the article.}
    run: {python: "shop_tools:reserve"}
  - name: load_skill
    group: flow-control
    description: Loads a skill by its name.
    parameters:
      type: object
      additionalProperties: false
      required: [skill]
      properties:
        skill: {type: string, description: The name of the skill.}
    run: {builtin: load_skill}
"""

CODE = """\
from harnessctl.errors import ToolError


def _one(ctx, article):
    row = ctx.world.connection().execute("SELECT * FROM items WHERE id = ?", [article]).fetchone()
    if row is None:
        raise ToolError(f"There is no article {article}; call `list_articles`.")
    return row


async def get_price(article, ctx):
    row = _one(ctx, article)
    taken = ctx.world.connection().execute("SELECT count(*) FROM reservations WHERE item = ?", [article]).fetchone()[0]
    return {"name": row["name"], "price": row["price"], "left": row["stock"] - taken}


async def list_articles(ctx):
    print("tools may print")
    return [row["name"] for row in ctx.world.connection().execute("SELECT name FROM items ORDER BY id")]


async def reserve(article, ctx):
    _one(ctx, article)
    db = ctx.world.connection()
    number = db.execute("SELECT count(*) FROM reservations").fetchone()[0] + 1
    db.execute("INSERT INTO reservations VALUES (?, ?, ?)", [number, article, (ctx.context["room"] or {}).get("id")])
    return {"reservation": number, "room": (ctx.context["room"] or {}).get("id")}
"""

SKILL = """\
---
name: answer-price
description: Answers questions about prices and articles.
metadata: {version: "1.0.0", kind: reply}
---
The customer wants the fact first.

## Rules

- Call `get_price` before you say a price. {#lookup .protected}
- Answer in at most 120 characters. {#short limit=reply_max_chars}
- Never promise a discount. {#discount}
"""

CHAT = """\
---
name: small-talk
description: Answers greetings and thanks.
metadata: {version: "1.0.0", kind: reply}
---
A short, warm answer.

## Rules

- Answer in at most 120 characters. {#short limit=reply_max_chars}
"""

HOOKS = """\
apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: reply-length
    event: stop
    check: {max_chars: {limit: reply_max_chars}}
    otherwise: {action: retry, max_retries: 1, message: {text: "The answer is too long. Say it shorter."}}
    enforces: [answer-price#short, small-talk#short]
"""

WORLD = """\
apiVersion: harnessctl/v1
kind: World
name: shop
version: 1.0.0
tables:
  items: {file: shop/items.csv, key: [id]}
  rooms: {file: shop/rooms.csv, key: [id]}
  reservations: {file: shop/reservations.csv, key: [number], types: {number: integer, item: integer}, mutable: true}
context:
  room: {one: true, sql: "SELECT id, name FROM rooms WHERE id = coalesce(:room, 'main')"}
simulation:
  mix: {price: 3, chat: 1}
  families: [shop/families/shop.yaml]
"""

FAMILIES = """\
apiVersion: harnessctl/v1
kind: Families
harness: shop
families:
  - id: price
    intent: price
    draw: SELECT 'main' AS room, id, name, price FROM items
    messages:
      en: ["How much is article {id}?", "What does number {id} cost?"]
      zh: ["{id}号多少钱?"]
    gold:
      skills: [answer-price]
      calls: [{tool: get_price, arguments: {article: "{id}"}}]
      facts: [{any: ["{price}"], source: get_price}]
      replies: {en: ["The {name} is {price} yuan."], zh: ["{name}{price}元。"]}
  - id: greeting
    intent: chat
    draw: SELECT 'main' AS room, name FROM rooms WHERE id = 'main'
    messages: {en: [Hello there, Good evening]}
    gold:
      skills: [small-talk]
      replies: {en: ["Welcome to {name}!"]}
"""

FILES = {
    "manifests/harness.yaml": HARNESS,
    "manifests/prompts/shop.yaml": PROMPT,
    "manifests/tools/shop.yaml": TOOLS,
    "manifests/tools/shop_tools.py": CODE,
    "manifests/hooks/shop.yaml": HOOKS,
    "manifests/worlds/shop.yaml": WORLD,
    "manifests/worlds/shop/items.csv": "id,name,price,stock\n1,teapot,89,4\n2,cup,19,40\n3,tray,35,7\n",
    "manifests/worlds/shop/rooms.csv": "id,name\nmain,The Tea Shop\nback,The Back Room\n",
    "manifests/worlds/shop/reservations.csv": "number,item,room\n",
    "manifests/worlds/shop/families/shop.yaml": FAMILIES,
    "skills/answer-price/SKILL.md": SKILL,
    "skills/small-talk/SKILL.md": CHAT,
}
