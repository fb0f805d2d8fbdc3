"""A small project to import into, and looks at what came of it."""

from __future__ import annotations

from pathlib import Path

from harnessctl.compile import validate_project

HARNESS = """\
apiVersion: harnessctl/v1
kind: Harness
name: shop
version: 1.0.0
include: {skills: ["*"], tools: ["*"]}
prompt: main
"""
PROMPT = """\
apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
blocks:
  - id: base
    template: You host a shop.
"""
TOOLS = """\
apiVersion: harnessctl/v1
kind: Tools
mcpServers:
  shop: {command: shop-server}
tools:
  - name: get_price
    description: The price of an article.
    run: {mcp: {server: shop}}
"""
PROJECT = {
    "manifests/harness.yaml": HARNESS,
    "manifests/prompts/main.yaml": PROMPT,
    "manifests/tools/shop.yaml": TOOLS,
    "skills/greet-viewers/SKILL.md": "---\nname: greet-viewers\ndescription: Greets.\n---\nBe kind.\n",
}


def compiles(root: Path) -> list[str]:
    """The errors of the project after an import; none is what is wanted."""
    include = root / "manifests/harness.yaml"
    if (root / "manifests/hooks").is_dir():
        include.write_text(HARNESS.replace('tools: ["*"]}', 'tools: ["*"], hooks: ["*"]}'))
    return [fault.render() for fault in validate_project(root).errors]


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
