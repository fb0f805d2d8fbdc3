"""A small project to compare with itself at another time."""

from __future__ import annotations

HARNESS = """\
apiVersion: harnessctl/v1
kind: Harness
name: shop
version: 1.0.0
include: {skills: ["*"]}
prompt: main
limits: {max_rounds: 4}
"""
PROMPT = """\
apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
inputs: {type: object, properties: {room: {type: string}}}
blocks:
  - id: base
    template: |
      You host the room {{ room }}.
      {% for s in skills %}{{ s.name }}: {{ s.description }}
      {% endfor %}
"""
SKILL = """\
---
name: greet
description: Greets a viewer.
metadata: {version: "1.0.0", kind: reply}
---
Be kind.

## Rules
- Say hello first. {#hello}
"""
FILES = {"manifests/harness.yaml": HARNESS, "manifests/prompts/main.yaml": PROMPT, "skills/greet/SKILL.md": SKILL}
