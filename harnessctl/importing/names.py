"""Names: what things are called in the project, and what a foreign name becomes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import Faults
from harnessctl.manifests.load import load_yaml
from harnessctl.manifests.locate import find_sources
from harnessctl.storage import digest_bytes, read_bytes

SLUG = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]*$")
MAX_NAME = 64
LOAD_SKILL = "load_skill"


class KnownNames(msgspec.Struct):
    """Names that the project has, each with the file that it stands in.

    `mcp` maps a tool to what a coding agent calls it where an MCP server carries it out: `mcp__server__tool`.
    """

    tools: dict[str, str] = {}
    skills: dict[str, str] = {}
    servers: dict[str, str] = {}
    hooks: dict[str, str] = {}
    mcp: dict[str, str] = {}

    def marked(self) -> set[str]:
        """Names of tools and skills that may not stand bare in a text: those with `_` or `-`."""
        return {name for name in (*self.tools, *self.skills) if "_" in name or "-" in name}


def known_names(root: Path) -> KnownNames:
    """The names of a project's tools, skills, MCP servers and hooks. What cannot be read has no names."""
    faults = Faults()
    out = KnownNames()
    for source in find_sources(root, faults).sources:
        if source.kind == "Skill":
            out.skills[source.name] = source.path
        if source.kind not in ("Tools", "Hooks"):
            continue
        document = load_yaml(source.path, read_bytes(root / source.path), faults)
        if document is None or not isinstance(document.value, dict):
            continue
        for key, names, field in (("tools", out.tools, "name"), ("hooks", out.hooks, "id")):
            items = document.get(key)
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and isinstance(item.get(field), str):
                    names.setdefault(item[field], source.path)
                    if called := _mcp_name(item):
                        out.mcp[item[field]] = called
        servers = document.get("mcpServers")
        for name in servers if isinstance(servers, dict) else {}:
            out.servers.setdefault(name, source.path)
    if out.skills:
        out.tools.setdefault(LOAD_SKILL, "the compiler, which adds it where there are skills")
    return out


def _mcp_name(tool: dict[str, Any]) -> str:
    run = tool.get("run")
    mcp = run.get("mcp") if isinstance(run, dict) else None
    return f"mcp__{mcp.get('server')}__{mcp.get('tool') or tool.get('name')}" if isinstance(mcp, dict) else ""


def slug(text: str) -> str:
    """`text` as lower-case letters, digits and single hyphens, at most 64; empty when nothing of it is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return name[:MAX_NAME].rstrip("-")


def slug_or_digest(text: str, prefix: str) -> str:
    """`slug(text)`; for a text without a Latin letter or digit, `prefix` and 6 hexadecimal digits of its SHA-256."""
    return slug(text) or f"{prefix}-{digest_bytes(text.encode())[:6]}"


def identifier(text: str) -> str:
    """`text` as a name that a model can call, at most 64 characters; empty when nothing of it is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("_")
    if name and not re.match(r"[A-Za-z_]", name):
        name = f"_{name}"
    return name[:MAX_NAME]


def free(name: str, taken: Container[str], limit: int = MAX_NAME) -> str:
    """`name`, or with `-2`, `-3`, ... when `taken` (a container) has it."""
    out, count = name, 1
    while out in taken:
        count += 1
        suffix = f"-{count}"
        out = name[: limit - len(suffix)].rstrip("-") + suffix
    return out
