"""A project of the evaluation's tests: a stall with four items, two skills, a guarded write, and scenarios of each kind."""

from __future__ import annotations

from pathlib import Path

HARNESS = """apiVersion: harnessctl/v1
kind: Harness
name: stall
version: 1.0.0
include:
  skills: [item, chat]
  tools: [stall]
  hooks: [guards]
prompt: main
world: stall
limits:
  max_rounds: {value: 5, range: [4, 6], unit: rounds}
  reply_max_chars: {value: 80, range: [60, 100], unit: codepoints}
require_skill: reply
"""
TOOLS = """apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_product
    description: Gets price and stock of a link.
    tags: [lookup]
    parameters: {type: object, properties: {link_id: {type: integer}}, required: [link_id]}
    run: {python: "stall:get_product"}
  - name: get_hours
    description: Gets when the stall is open.
    tags: [lookup]
    parameters: {type: object, properties: {day: {type: string}}}
    run: {python: "stall:get_hours"}
  - name: reserve
    description: Puts a link aside for a viewer.
    effect: write
    parameters:
      type: object
      properties: {link_id: {type: integer}, viewer: {type: string}}
      required: [link_id, viewer]
    run: {python: "stall:reserve"}
  - name: stay_silent
    description: Ends without a reply, for advertising.
    parameters: {type: object, properties: {}}
    final: {route: silent}
  - name: load_skill
    description: Loads a skill.
    parameters: {type: object, properties: {skill: {}}, required: [skill]}
    run: {builtin: load_skill}
"""
CODE = '''"""The tools of the stall."""

from harnessctl.errors import ToolError


async def get_product(link_id, ctx):
    row = ctx.world.connection().execute("SELECT * FROM products WHERE link_id = ?", [link_id]).fetchone()
    if row is None:
        raise ToolError("no such link")
    return {"link_id": row["link_id"], "name": row["name"], "price": row["price"], "stock": row["stock"]}


async def get_hours(ctx, day="today"):
    return {"day": day, "from": "20:00", "to": "23:00"}


async def reserve(link_id, viewer, ctx):
    ctx.world.connection().execute("INSERT OR REPLACE INTO reserved (link_id, viewer) VALUES (?, ?)", [link_id, viewer])
    return {"link_id": link_id, "reserved": True}
'''
HOOKS = """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: look-first
    version: 1.0.0
    event: pre_tool
    when: {effects: [write]}
    enforces: [item#lookup]
    check: {tool_called: {tools: [get_product], ok: true, same_args: [link_id]}}
    otherwise: {action: block, message: {text: "Call `get_product` first."}}
  - id: short
    version: 1.0.0
    event: stop
    check: {max_chars: {limit: reply_max_chars}}
    otherwise: {action: retry, max_retries: 1, exhausted: block, message: {text: "Too long. Say it shorter."}}
"""
PROMPT = """apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
inputs: {type: object, properties: {}}
blocks:
  - id: rules
    heading: You keep a stall.
    items:
      - {id: steps, text: "Load a skill first.", protected: true}
      - {id: short, text: "Reply in at most 80 characters.", limit: reply_max_chars}
      - {id: kind, text: "Be kind to everybody who comes by."}
  - id: skills
    template: "{% for skill in skills %}{{ skill.name }}: {{ skill.description }}\\n{% endfor %}"
  - id: viewer
    role: user
    pin: true
    template: "{% for m in messages %}{{ m.text }}\\n{% endfor %}"
"""
ITEM = """---
name: item
description: Answers questions on price and stock.
metadata: {version: "1.0.0", kind: reply}
---
## Rules
- Call `get_product` before you say a price. {#lookup .protected}
- Say the fact first and keep the rest short. {#first}
"""
CHAT = """---
name: chat
description: Talks with viewers who ask for nothing.
metadata: {version: "1.0.0", kind: reply}
---
## Rules
- Welcome everybody with a short word. {#welcome}
- Never speak of prices that nobody asked for. {#no-price}
"""
WORLD = """apiVersion: harnessctl/v1
kind: World
name: stall
version: 1.0.0
tables:
  products: {file: stall/products.csv, key: [link_id]}
  reserved: {file: stall/reserved.csv, key: [link_id, viewer], mutable: true}
simulation:
  mix: {price: 5, stock: 2, hello: 2, reserve: 3, spam: 1, which: 1}
  families: [stall/families/all.yaml]
  faults: {timeout: 0.05, malformed: 0.05, denied: 0.02, stale: 0.03, persist: 0.3}
"""
FAMILIES = """apiVersion: harnessctl/v1
kind: Families
harness: stall
families:
  - id: price
    intent: price
    draw: &all SELECT link_id, name, price, stock, 'en' AS language FROM products
    messages: {en: ["how much is link {link_id}?", "price of {name}, link {link_id}"]}
    gold:
      skills: [item]
      calls: [{tool: get_product, arguments: {link_id: "{link_id}"}}]
      facts: [{any: ["{price} yuan"], source: get_product}]
      claims: [free of charge]
      replies: {en: ["Link {link_id} is {price} yuan.", "It is {price} yuan for link {link_id}."]}
      fallbacks: {en: ["Please tap link {link_id}."]}
  - id: stock
    intent: stock
    draw: *all
    messages: {en: ["how many of link {link_id} are left?"]}
    gold:
      skills: [item]
      calls: [{tool: get_product, arguments: {link_id: "{link_id}"}}]
      facts: [{any: ["{stock} left", "{stock} of"], source: get_product}]
      replies: {en: ["There are {stock} left of link {link_id}."]}
      fallbacks: {en: ["Please tap link {link_id}."]}
  - id: hello
    intent: hello
    draw: *all
    messages: {en: ["hello there", "good evening"]}
    gold:
      skills: [chat]
      replies: {en: ["Welcome, have a look around!"]}
  - id: reserve
    intent: reserve
    draw: SELECT link_id, name, price, stock, 'en' AS language, 'mira' AS viewer FROM products
    messages: {en: ["please put link {link_id} aside for me"]}
    gold:
      skills: [item]
      calls: [{tool: reserve, arguments: {link_id: "{link_id}", viewer: "{viewer}"}}]
      facts: [{any: [aside, reserved], source: reserve}]
      end_state: [{table: reserved, where: {link_id: "{link_id}", viewer: "{viewer}"}}]
      replies: {en: ["I have put link {link_id} aside for you."]}
      fallbacks: {en: ["Please ask again in a minute."]}
  - id: spam
    intent: spam
    draw: *all
    messages: {en: ["buy followers now"]}
    gold:
      calls: [{tool: stay_silent, compare: []}]
      stop: silent
      route: silent
  - id: which
    intent: which
    draw: *all
    messages: {en: ["how much is that one?"]}
    gold:
      skills: [item]
      replies: {en: ["Which link do you mean?"]}
"""

STALL: dict[str, str] = {
    "manifests/harness.yaml": HARNESS,
    "manifests/tools/stall.yaml": TOOLS,
    "manifests/tools/stall.py": CODE,
    "manifests/hooks/guards.yaml": HOOKS,
    "manifests/prompts/main.yaml": PROMPT,
    "manifests/worlds/stall.yaml": WORLD,
    "manifests/worlds/stall/families/all.yaml": FAMILIES,
    "manifests/worlds/stall/products.csv": "link_id,name,price,stock\n1,tea,18,40\n2,wok,129,12\n3,lamp,89,30\n5,soap,15.5,200\n",
    "manifests/worlds/stall/reserved.csv": "link_id,viewer\n1,nobody\n",
    "skills/item/SKILL.md": ITEM,
    "skills/chat/SKILL.md": CHAT,
}


def write_stall(root: Path) -> Path:
    """Write the project into `root`."""
    for name, text in STALL.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
