"""Scope: the names that one harness knows, which its texts, hooks and templates may refer to."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from harnessctl.manifests.violations import did_you_mean
from harnessctl.storage import digest_bytes


class Scope:
    """The names of one harness, or of the whole project (`harness` is empty) for sources that no harness includes.

    `tools`, `skills` and `servers` map a name to its outline (see the modules of each kind); `limits` maps a name to
    the effective value (no value means anything where `harness` is empty); `harnesses` are the names by which judges are called. `elsewhere` maps a name of the project
    that this harness does not include to what it is ("tool of manifests/tools/x.yaml").
    """

    def __init__(
        self,
        root: Path,
        harness: str,
        *,
        tools: dict[str, dict[str, Any]],
        skills: dict[str, dict[str, Any]],
        servers: dict[str, dict[str, Any]],
        limits: dict[str, int | float],
        harnesses: Iterable[str],
        elsewhere: dict[str, str],
        require_skill: bool = False,
    ) -> None:
        self.root = root
        self.harness = harness
        self.tools = tools
        self.skills = skills
        self.servers = servers
        self.limits = limits
        self.harnesses = frozenset(harnesses)
        self.elsewhere = elsewhere
        self.require_skill = require_skill

    @functools.cached_property
    def text_digest(self) -> str:
        """Digest of what the meaning of a text depends on: names alone."""
        names = [sorted(self.tools), sorted(self.skills), sorted(self.limits), sorted(self.elsewhere.items())]
        return digest_bytes(orjson.dumps([self.harness, names]))

    @functools.cached_property
    def full_digest(self) -> str:
        """Digest of everything here but the rules of skills and the places of things."""
        skills = {name: outline["kind"] for name, outline in self.skills.items()}
        tools = {name: {k: v for k, v in t.items() if k != "place"} for name, t in self.tools.items()}
        facts = [self.text_digest, skills, tools, sorted(self.servers), self.limits, sorted(self.harnesses)]
        return digest_bytes(orjson.dumps([*facts, self.require_skill], option=orjson.OPT_SORT_KEYS))

    @functools.cached_property
    def marked_names(self) -> frozenset[str]:
        """Known names with `_` or `-` in them: a bare mention of one is taken for a mistake."""
        return frozenset(name for name in (*self.tools, *self.skills, *self.elsewhere) if "_" in name or "-" in name)

    @functools.cached_property
    def tags(self) -> frozenset[str]:
        """The tags of the tools."""
        return frozenset(tag for tool in self.tools.values() for tag in tool["tags"])

    @functools.cached_property
    def groups(self) -> frozenset[str]:
        """The groups of the tools."""
        return frozenset(tool["group"] for tool in self.tools.values())

    def near(self, name: str, known: Iterable[str]) -> str:
        """The hint for an unknown name: where it is, or the closest known one."""
        if name in self.elsewhere:
            return f"it is a {self.elsewhere[name]}, which harness {self.harness} does not include"
        return did_you_mean(name, sorted(known))


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Names as a fault lists them: sorted, at most `limit`, `nothing` when there are none."""
    ordered = sorted(names)
    more = f" and {len(ordered) - limit} more" if len(ordered) > limit else ""
    return (", ".join(ordered[:limit]) + more) or "nothing: there are none"
