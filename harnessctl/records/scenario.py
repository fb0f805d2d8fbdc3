"""Scenario: a request with what a right answer does, one line of JSON Lines [3.3].

What always holds: gold is in canonical names, its texts are filled in, and it belongs to one harness; `gold` null means
that a person has yet to say what is right (scenarios made of logs).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harnessctl.records.comment import CommentInput
from harnessctl.records.gold_call import GoldCall
from harnessctl.records.task import Task

__all__ = ["EndState", "Fact", "Gold", "GoldCall", "Logged", "LoggedCall", "Needs", "Scenario"]

FORMAT = "harnessctl/scenario.v1"


class Fact(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Something that the reply must say: one of `any`. `source` is the tool that tells it."""

    any: list[str]
    source: str | None = None


class EndState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Rows of a table that must be there after the request (`absent`: must not), with these values."""

    table: str
    where: dict[str, Any]
    values: dict[str, Any] = {}
    absent: bool = False


class Needs(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a variant must leave for the scenario to be fair: `rules` are `skill#rule`, `min_*` what gold takes up."""

    skills: list[str] = []
    rules: list[str] = []
    tools: list[str] = []
    min_chars: int = 0
    min_rounds: int = 0


class Gold(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a right answer does; see manifests.specs.families.Gold.

    `prelude` are calls that hooks demand before those of `calls`; `known` are values by name (a parameter, a column)
    that the viewer or the room supplies, from which such calls can be filled in.
    """

    skills: list[str] = []
    strategies: list[str] = []
    calls: list[GoldCall] = []
    optional: list[GoldCall] = []
    alternatives: list[list[GoldCall]] = []
    facts: list[Fact] = []
    claims: list[str] = []
    route: Literal["public", "private", "silent"] = "public"
    stop: Literal["replied", "refused", "silent", "hook_blocked"] = "replied"
    end_state: list[EndState] = []
    prelude: list[GoldCall] = []
    replies: list[str] = []
    fallbacks: list[str] = []
    known: dict[str, Any] = {}
    needs: Needs = msgspec.field(default_factory=Needs)


class LoggedCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A call as a log has it, in canonical names."""

    tool: str
    arguments: dict[str, Any] = {}
    status: str = "ok"


class Logged(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What was answered when the request was served, for a person to confirm or correct as gold.

    `bundle` is the digest of the harness that served it; `times` counts the log's requests of the same text and room.
    """

    reply: str = ""
    skills: list[str] = []
    tools: list[LoggedCall] = []
    stop: str | None = None
    route: str | None = None
    bundle: str | None = None
    times: int = 1


class Scenario(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """One scenario. `world` is the digest of the tables that gold was drawn from, `source` where the scenario came from
    (`family`, or the log's file and line); `logged` is what a log says was answered; `task` is what a built set asks
    besides."""

    id: str
    request: CommentInput
    harness: str
    intent: str
    family: str
    language: str
    world: str | None = None
    seed: int | None = None
    mode: list[Literal["history", "actions", "several", "mixed"]] = []
    source: str | None = None
    gold: Gold | None = None
    logged: Logged | None = None
    task: Task | None = None
