"""A hostile project: names inside one another, common words as names, names in every kind of code span, in templates,
hook messages, Python's own messages, tool errors and few-shot examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile import compile_project

TOOLS = ("get", "get_item", "get_item_price", "show", "item")
SKILLS = ("price", "item-qa", "item-qa-more", "ask")


@dataclass
class Bazaar:
    """What differs from one hostile project to the next. `tools` are five names, `skills` four; `notes` are sentences
    that mention nothing, `asides` code spans that are no reference."""

    tools: tuple[str, ...] = TOOLS
    skills: tuple[str, ...] = SKILLS
    notes: tuple[str, ...] = ("Be quick.", "先看再说。", "Use no `x` here.")
    asides: tuple[str, ...] = ("`x`",)
    parameters: tuple[str, ...] = ("link_id", "count", "note")
    extra: dict[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """{path: text} of the whole project."""
        t, s = [f"`tool:{name}`" for name in self.tools], [f"`skill:{name}`" for name in self.skills]
        said_tool = [f"`tool:{name}`" if name in self.skills else f"`{name}`" for name in self.tools]
        said_skill = [f"`skill:{name}`" for name in self.skills]
        p, note, aside = self.parameters, self.notes, " ".join(self.asides)
        files = {
            "manifests/harness.yaml": HARNESS.format(skills=", ".join(f'"{name}"' for name in self.skills)),
            "manifests/prompts/main.yaml": PROMPT.format(
                first=self.tools[0], last=self.tools[2], skill=self.skills[1], t=t, s=s, note=note, aside=aside
            ),
            "manifests/tools/stall.yaml": TOOLS_YAML.format(names=self.tools, t=t, s=s, p=p, note=note, aside=aside),
            "manifests/tools/stall.py": CODE.format(says=said_tool, skills=said_skill),
            "manifests/hooks/guards.yaml": HOOKS.format(names=self.tools, t=t, s=s, p=p, skills=self.skills),
            "manifests/hooks/guards.py": GUARDS.format(says=said_tool, skills=said_skill),
        }
        for number, name in enumerate(self.skills):
            kind = "strategy" if number == 3 else "reply"
            other = (1, 3, 0, 1)[number]  # so that the third is named by none
            files[f"skills/{name}/SKILL.md"] = SKILL.format(
                name=name, kind=kind, t=t, other=s[other], note=note, aside=aside, number=number
            )
        files[f"skills/{self.skills[1]}/examples.yaml"] = EXAMPLES.format(
            names=self.tools, t=t, p=p, skill=self.skills[1]
        )
        return files | self.extra


def written(files: dict[str, str], root: Path) -> Path:
    """The project, put on disk under `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def compiled(root: Path) -> Bundle:
    """The bundle of the default harness of a project."""
    return read_bundle(compile_project(root).bundles[0].path)


HARNESS = """apiVersion: harnessctl/v1
kind: Harness
name: bazaar
version: 1.0.0
include:
  skills: [{skills}]
  tools: [stall]
  hooks: [guards]
prompt: main
limits:
  max_rounds: {{value: 6, range: [4, 8]}}
  reply_max_chars: {{value: 80, range: [50, 120], unit: codepoints}}
  discount: {{value: 0.5, range: [0.25, 0.75]}}
require_skill: reply
"""
PROMPT = """apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
inputs:
  type: object
  properties:
    room: {{type: [object, "null"]}}
    actions: {{type: [array, "null"], items: {{type: object}}}}
blocks:
  - id: base
    pin: true
    template: |
      First {{{{ tool('{first}') }}}}, then `{{{{ tool('{last}') }}}}`, with {{{{ skill('{skill}') }}}} in {{{{ limits.reply_max_chars }}}}.
  - id: always
    heading: "Always {t[3]}"
    items:
      - {{id: honest, text: "Say what {t[1]} said. {aside}", protected: true}}
      - {{id: brief, text: "At most 80 characters.", limit: reply_max_chars}}
      - {{id: shown, text: "After {t[0]} comes {t[4]}.", after: honest}}
      - {{id: asked, text: "{note[0]} See `#shown`.", after: shown}}
      - {{id: never, text: "Never call {t[1]} twice.", verbatim: true, requires: brief}}
  - id: second
    heading: "Then"
    after: always
    items:
      - {{id: one, text: "Load {s[1]} first."}}
      - {{id: two, text: "{note[1]}"}}
  - id: third
    items:
      - {{id: three, text: "Half is 0.5 off.", limit: discount}}
  - id: skills
    when: skills
    template: |
      {{% for skill in skills %}}
      {{{{ skill.name }}}}: {{{{ skill.description }}}}
      {{% endfor %}}
  - id: viewer
    role: user
    pin: true
    template: "{{% for act in actions or [] %}}[{{{{ act.what }}}}]{{% endfor %}}{{% for m in messages %}}{{{{ m.text }}}}{{% endfor %}}"
"""
TOOLS_YAML = """apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: {names[0]}
    description: "Gets all of them, unlike {t[1]}. {aside}"
    parameters: {{type: object, properties: {{{p[0]}: {{type: integer, description: "The number that {t[2]} takes."}}}}, required: [{p[0]}]}}
    run: {{python: "stall:get"}}
  - name: {names[1]}
    description: "Gets one. {note[2]}"
    tags: [lookup]
    parameters:
      type: object
      properties:
        {p[0]}: {{type: integer, minimum: 1, description: "Which."}}
        {p[1]}: {{enum: [1, 2, 3], description: "How many."}}
        {p[2]}: {{type: object, properties: {{{p[0]}: {{type: string, description: "Within, as {t[0]} says it."}}}}, additionalProperties: false}}
      required: [{p[0]}]
      dependentRequired: {{{p[1]}: [{p[0]}]}}
      additionalProperties: false
    run: {{python: "stall:get_item"}}
  - name: {names[2]}
    description: "The price of what {t[1]} gives; after {s[1]} was loaded."
    tags: [price]
    parameters:
      type: object
      properties: {{{p[0]}: {{type: integer}}, {p[1]}: {{type: integer}}}}
      anyOf: [{{required: [{p[0]}]}}, {{required: [{p[1]}]}}]
    run: {{python: "stall:get_item_price"}}
  - name: {names[3]}
    description: "Shows it."
    effect: write
    group: commerce
    parameters: {{type: object, properties: {{{p[2]}: {{type: string}}}}}}
    run: {{python: "stall:show"}}
  - name: {names[4]}
    description: "Ends without {t[2]}."
    group: flow-control
    parameters: {{type: object, properties: {{{p[2]}: {{type: string}}}}}}
    final: {{reply: "Sorry: {{{p[2]}}}"}}
"""
CODE = '''"""Tools; this docstring names `get_item_price`, and nobody reads it out."""

from harnessctl.errors import ToolError


def get(link_id=0, ctx=None, **more):
    return {{"found": []}}


def get_item(link_id=0, ctx=None, **more):
    if link_id == 13:
        raise ToolError("There is no such thing. Ask {says[2]}, or load {skills[1]}; `x` is not {says[0]}.")
    return {{"link_id": link_id}}


def get_item_price(link_id=0, ctx=None, **more):
    raise ToolError(f"Number {{link_id}}: see {says[1]}.")


def show(note="", ctx=None, **more):
    return {{"shown": note}}
'''
HOOKS = """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: first-look
    event: pre_tool
    when: {{tools: [{names[3]}]}}
    check: {{tool_called: {{tools: [{names[1]}], ok: true}}}}
    otherwise: {{action: block, message: {{text: "Call {t[1]} first, see {s[1]}."}}}}
    enforces: ["{skills[1]}#look"]
  - id: told-by-code
    event: pre_tool
    when: {{tools: [{names[0]}]}}
    check: {{python: "guards:not_yet"}}
    otherwise: {{action: block}}
  - id: again
    event: post_tool
    when: {{tools: [{names[1]}], result: [error]}}
    then: {{action: retry, max_retries: 2, exhausted: warn, message: {{text: "Try {t[2]} once.", wrap: note}}}}
  - id: short
    event: stop
    check: {{max_chars: {{limit: reply_max_chars}}}}
    otherwise: {{action: retry, max_retries: 1, exhausted: block, message: {{text: "Shorter.", role: user}}}}
  - id: no-show
    event: stop
    check: {{expr: "calls('{names[3]}') | length < 9"}}
    otherwise: {{action: block, message: {{text: "Too many calls of {t[3]}."}}}}
"""
GUARDS = '''def not_yet(names):
    """Says `get` in a docstring."""
    return "Not yet. Call {says[1]} and load {skills[1]} before {says[0]}, said `x`."
'''
SKILL = """---
name: {name}
description: "Answers with {t[1]} what {other} does not. {note[1]}"
metadata: {{version: "1.0.0", kind: {kind}}}
---
{aside} The viewer hears it once, from {t[2]}.

## Rules
- Call {t[1]} before any price. {{#look .protected}}
- Reply in at most 80 characters. {{#short limit=reply_max_chars}}
- After `#look`, ask {t[0]}. {{#then after=look}}
- {note[0]} {{#note-{number} after=then}}
- Never guess; `#look` waits for {t[4]}. {{#ask requires=note-{number}}}
- Word for word {t[3]}. {{#exact .verbatim}}

## More {{.rules}}
1. {note[1]} {{#more}}
2. Say what {t[1]} said. {{#said after=more}}
"""
EXAMPLES = """apiVersion: harnessctl/v1
kind: Examples
examples:
  - messages:
      - {{role: user, content: "how much is 3?"}}
      - role: assistant
        calls:
          - {{tool: load_skill, arguments: {{skill: {skill}}}}}
          - {{tool: {names[1]}, arguments: {{{p[0]}: 3, {p[1]}: 2}}}}
      - {{role: tool, content: '{{"price": 5}}'}}
      - {{role: assistant, content: "Five, says {t[1]}."}}
"""
