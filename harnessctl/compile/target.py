"""Target: one harness on its way to a bundle, with all that the passes have found of it so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harnessctl.bundle import state
from harnessctl.compile.harnesses import Plan
from harnessctl.compile.scope import Scope
from harnessctl.compile.unit import Bound, Unit

#: A tool that an MCP server offers, and the place [path, line, col] of the server's entry.
Offer = tuple[state.Tool, list[Any]]


@dataclass(slots=True, frozen=True)
class EncodedBundle:
    """A bundle as it is written: see `bundle.files.Bundle`."""

    name: str
    version: str
    digest: str
    data: bytes

    @property
    def file_name(self) -> str:
        """`<name>-<version>+<12 hex>.bundle.json`."""
        return f"{self.name}-{self.version}+{self.digest[:12]}.bundle.json"


@dataclass(slots=True)
class Target:
    """One harness under way, or (`plan` is None) the sources that no harness includes, which are checked all the same.

    `units` and `bound` are by kind, in the order of the harness; `reply` are the fields of the state that the harness
    itself decides, `judges` the digests of those that judge it, by the names that its hooks call them.
    """

    plan: Plan | None
    units: dict[str, list[Unit]]
    limits: dict[str, state.Limit]
    scope: Scope
    discovered: list[Offer] = field(default_factory=list)
    bound: dict[str, list[Bound]] = field(default_factory=dict)
    reply: dict[str, Any] = field(default_factory=dict)
    judges: dict[str, str] = field(default_factory=dict)
    bundle: EncodedBundle | None = None

    @property
    def judged_by(self) -> list[str]:
        """The names that its hooks call judges by."""
        return [name for bound in self.bound["Hooks"] for name, *_ in bound.links.get("judge", [])]

    @property
    def all_bound(self) -> list[Bound]:
        """Every bound source."""
        return [bound for group in self.bound.values() for bound in group]
