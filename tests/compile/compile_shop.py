"""The shop project of the compiler's tests: one of everything, without a fault."""

from __future__ import annotations

HARNESS = """apiVersion: harnessctl/v1
kind: Harness
name: shop
version: 1.0.0
include:
  skills: [item-qa, upsell]
  tools: [catalog]
  hooks: [guards]
prompt: main
world: stall
limits:
  max_rounds: {value: 4, range: [2, 6]}
  reply_max_chars: {value: 80, range: [50, 120], unit: codepoints}
require_skill: reply
reply:
  route: {private_when: "'address' in message"}
"""
TOOLS = """apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_product
    description: Gets the product behind a link. Load `item-qa` before.
    tags: [lookup]
    parameters:
      type: object
      properties:
        link_id: {type: integer, minimum: 1, description: "The number of the link, not a `#id`."}
      required: [link_id]
    run: {python: "shelf:get_product"}
  - name: add_to_cart
    description: Puts the product of `get_product` into the cart.
    group: commerce
    effect: write
    parameters: {type: object, properties: {link_id: {type: integer}, count: {type: integer}}, required: [link_id]}
    run:
      http:
        url: https://shop.example/cart/{link_id}
        method: POST
        headers: {Authorization: "Bearer ${SHOP_TOKEN}"}
        body: {count: "{count}"}
  - name: search_faq
    description: Searches the answers to common questions.
    run: {builtin: search_faq}
  - name: refuse
    description: Ends without an answer.
    group: flow-control
    parameters: {type: object, properties: {why: {type: string}}}
    final: {reply: "Sorry: {why}"}
"""
SHELF = """from prices import price


def get_product(link_id, ctx):
    return {"price": price(link_id)}
"""
HOOKS = """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: look-up-first
    event: pre_tool
    when: {effects: [write]}
    check: {tool_called: {tools: [get_product], ok: true, same_args: [link_id]}}
    otherwise: {action: block, message: {text: "Call `get_product` first."}}
    enforces: [item-qa#lookup]
  - id: short-reply
    event: stop
    order: -1
    check: {max_chars: {limit: reply_max_chars}}
    otherwise: {action: retry, max_retries: 2, exhausted: fallback, fallback: {reply: "One moment."}}
"""
PROMPT = """apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
inputs:
  type: object
  properties:
    room: {type: object, properties: {title: {type: string}}}
    links: {type: array, items: {type: object}}
  required: [room]
blocks:
  - id: role
    pin: true
    template: |
      You host {{ room.title }}.
      Use {{ tool('get_product') }} and load {{ skill('item-qa') }}.
  - id: always
    heading: Always
    after: role
    items:
      - {id: honest, text: Say what `get_product` said., protected: true}
      - {text: At most 80 characters., limit: reply_max_chars}
  - id: links
    when: links
    template: "{% for link in links %}{{ link.title }} {% endfor %}"
  - id: viewer
    role: user
    template: "{% for m in messages %}{{ m.viewer }}: {{ m.text }}{% endfor %}"
"""
WORLD = """apiVersion: harnessctl/v1
kind: World
name: stall
version: 1.0.0
tables:
  faq: {file: stall/faq.csv, key: [id]}
faq: {table: faq}
"""
ITEM_QA = """---
name: item-qa
description: Answers price and stock questions with `get_product`.
metadata: {version: "1.2.0", kind: reply}
allowed-tools: get_product search_faq
---
The viewer hears the answer once: fact first.

## Rules
- Call `get_product` before any price is said. {#lookup .protected}
- Reply in at most 80 characters. {#short limit=reply_max_chars}
- If two links fit, ask; `#lookup` waits. {#ask requires=lookup}
"""
EXAMPLES = """apiVersion: harnessctl/v1
kind: Examples
examples:
  - messages:
      - {role: user, content: "get_product of 3?"}
      - role: assistant
        calls: [{tool: get_product, arguments: {link_id: 3}}]
      - {role: tool, content: '{"price": 5}'}
      - {role: assistant, content: "5 yuan, says `get_product`."}
"""
UPSELL = """---
name: upsell
description: Offers a second item.
metadata: {kind: strategy}
---
Offer one more.
"""

SHOP: dict[str, str] = {
    "manifests/harness.yaml": HARNESS,
    "manifests/tools/catalog.yaml": TOOLS,
    "manifests/tools/shelf.py": SHELF,
    "prices.py": "def price(link_id):\n    return 5\n",
    "manifests/hooks/guards.yaml": HOOKS,
    "manifests/prompts/main.yaml": PROMPT,
    "manifests/worlds/stall.yaml": WORLD,
    "manifests/worlds/stall/faq.csv": "id,question,answer\n1,Hours?,Always\n",
    "skills/item-qa/SKILL.md": ITEM_QA,
    "skills/item-qa/examples.yaml": EXAMPLES,
    "skills/upsell/SKILL.md": UPSELL,
}
