"""A small harness in which skills and rules are tied to each other in every way: {path: text}."""

from __future__ import annotations

KIOSK = {
    "manifests/harness.yaml": """apiVersion: harnessctl/v1
kind: Harness
name: kiosk
version: 1.0.0
include: {skills: ["*"], tools: [kiosk], hooks: [kiosk]}
prompt: kiosk
limits: {reply_max_chars: {value: 80, range: [60, 120]}, max_rounds: {value: 4, range: [4, 6]}}
require_skill: reply
""",
    "manifests/prompts/kiosk.yaml": """apiVersion: harnessctl/v1
kind: PromptPipeline
name: kiosk
blocks:
  - id: base
    pin: true
    template: |
      You sell papers. Begin with `{{ skill('in-template') }}`.
  - id: more
    heading: Always
    items:
      - {id: first, text: "See `in-item`.", protected: true}
      - {id: second, text: "Be brief, as `#first` says.", requires: first}
  - id: skills
    when: skills
    template: |
      {% for skill in skills %}
      {{ skill.name }}: {{ skill.description }}
      {% endfor %}
""",
    "manifests/tools/kiosk.yaml": """apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: load_skill
    version: 1.0.0
    group: flow-control
    description: Opens a skill.
    parameters: {type: object, properties: {skill: {type: string}}, required: [skill], additionalProperties: false}
    run: {builtin: load_skill}
  - name: get_paper
    version: 1.0.0
    group: retrieval
    description: Looks a paper up. Load `in-tool` before.
    parameters: {type: object, properties: {paper_no: {type: integer}}, additionalProperties: false}
    run: {python: "kiosk:get_paper"}
""",
    "manifests/tools/kiosk.py": '''"""Papers."""


def get_paper(paper_no: int = 0) -> dict:
    """One paper, or the way to it."""
    if paper_no < 0:
        raise ValueError("Ask as `in-code` says.")
    return {"paper": paper_no}
''',
    "manifests/hooks/kiosk.yaml": """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: loaded
    version: 1.0.0
    event: stop
    check: {skill_loaded: {skill: in-check}}
    otherwise: {action: retry, max_retries: 1, exhausted: warn, message: {text: "Load `in-message`."}}
  - id: expression
    version: 1.0.0
    event: stop
    check: {expr: "'in-expression' not in skills_loaded or round > 1"}
    otherwise: {action: warn}
  - id: enforcing
    version: 1.0.0
    event: stop
    enforces: [free-one#enforced]
    check: {max_chars: {limit: reply_max_chars}}
    otherwise: {action: retry, max_retries: 1, exhausted: block, message: {text: "Shorter."}}
""",
    **{
        f"skills/{name}/SKILL.md": f"""---
name: {name}
description: Skill {number} of those that something names.
metadata: {{version: "1.0.0", kind: reply}}
---
## Rules

- Say something. {{#say}}
- Say it well. {{#well}}
"""
        for number, name in enumerate(
            ["in-template", "in-item", "in-tool", "in-code", "in-check", "in-message", "in-expression"]
        )
    },
    "skills/free-one/SKILL.md": """---
name: free-one
description: Sells a paper.
metadata: {version: "1.0.0", kind: reply}
---
A buyer stands there. `#told` is the heart of it.

## Rules

- Look it up with `get_paper` before you speak. {#look .protected}
- Name the paper. {#name requires=needed}
- Know the title. {#needed}
- Never guess a title. {#told}
- Say thanks as `#name` does. {#thanks}
- A reply has at most 80 characters. {#short limit=reply_max_chars}
- Smile at the end. {#smile after=thanks}
- Wave after the smile. {#wave after=smile}
- Stay within the law. {#enforced requires=base}
- Know the law. {#base}
- Do not change a word of this. {#exact .verbatim}

## Steps {.rules}

1. Take the money. {#take}
2. Hand the paper over. {#hand}
3. Give change back. {#change}
""",
    "skills/free-two/SKILL.md": """---
name: free-two
description: Wraps a paper.
metadata: {version: "1.0.0", kind: strategy}
---
## Rules

- Work as `named-by-two` says. {#as}
- Be quick. {#quick}
""",
    "skills/named-by-two/SKILL.md": """---
name: named-by-two
description: Folds a paper.
metadata: {version: "1.0.0", kind: strategy}
---
## Rules

- Fold it once. {#once}
- Press the fold. {#press}
""",
    "skills/free-three/SKILL.md": """---
name: free-three
description: Counts what is left.
metadata: {version: "1.0.0", kind: strategy}
---
## Rules

- Count twice. {#twice}
- Write it down. {#down}
""",
}
