"""Trajectories as people read them: a row each, or the whole exchange."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from harnessctl.cli.output import clip
from harnessctl.records.trajectory import Trajectory

#: What a terminal would obey, or that turns text round: shown as it is written in Python.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` without power over the terminal: viewers, models and tools may have put escape sequences into it."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def summary_rows(trajectories: Iterable[Trajectory]) -> list[tuple[str, ...]]:
    """(id, asked, skills, tools, said, ended) for each trajectory.

    Failed calls are marked with their status; a reply that was proposed and never said is shown as such.
    """
    return [
        tuple(
            printable(cell)
            for cell in (
                t.id,
                clip(asked(t), 60),
                ", ".join(t.skills) or "-",
                _tools(t) or "-",
                clip(t.reply, 90) or _unsaid(t),
                t.stop if t.route == "public" or t.stop == "silent" else f"{t.stop} ({t.route})",
            )
        )
        for t in trajectories
    ]


def asked(trajectory: Trajectory) -> str:
    """What the viewer or viewers wrote."""
    request = trajectory.request
    if isinstance(request.get("messages"), list):
        return " / ".join(str(m.get("text", "")) for m in request["messages"] if isinstance(m, dict))
    return str(request.get("text", ""))


def stop_counts(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """How many ended with each reason, most first."""
    return dict(Counter(t.stop for t in trajectories).most_common())


def transcript(t: Trajectory) -> str:
    """One request in full, as plain text."""
    lines = [
        f"{t.id}  {t.harness}  bundle {t.bundle[:12]}  {t.model}  loop {t.loop}",
        f"ended {t.stop} ({t.route}) after {t.took_s:.2f} s, {len(t.calls)} model calls, {len(t.tools)} tool calls",
    ]
    if t.error:
        lines.append(f"error: {t.error}")
    lines += [f"warning: {warning}" for warning in t.warnings]
    for message in t.messages:
        lines.append("")
        lines.append(f"[{message.get('role')}]")
        if message.get("content"):
            lines.append(_indent(str(message["content"])))
        for name, arguments in _called(message):
            lines.append(f"    -> {name} {arguments}")
    if t.tools:
        lines += ["", "tool calls:"]
    for call in t.tools:
        outcome = call.error or clip(orjson.dumps(call.result).decode(), 160)
        took = (call.ended_s - call.started_s) * 1000
        lines.append(
            f"    {call.round}  {call.name}({_arguments(call.arguments)}) {call.status}, {took:.1f} ms: {outcome}"
        )
    decided = [d for d in t.hooks if d.decision not in ("pass", "observed")]
    if decided:
        lines += ["", "hooks that did something:"]
    for decision in decided:
        why = decision.error or decision.reason or ""
        lines.append(
            f"    {decision.round}  {decision.event} {decision.hook}: {decision.decision} {clip(why, 160)}".rstrip()
        )
    lines += ["", "reply:", _indent(t.reply or "(nothing)")]
    return printable("\n".join(lines))


def _called(message: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """(name, arguments) of the calls in a message, as far as it has the form of one."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield function.get("name"), function.get("arguments")


def _unsaid(t: Trajectory) -> str:
    """The last reply that was proposed and not said, marked so; `-` when there was none."""
    if t.stop in ("silent", "refused"):
        return "-"
    last = next((m.get("content") for m in reversed(t.messages) if m.get("role") == "assistant"), None)
    return f"(not said: {clip(str(last), 60)})" if last else "-"


def _tools(t: Trajectory) -> str:
    return ", ".join(c.name if c.status == "ok" else f"{c.name} ({c.status})" for c in t.tools)


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={orjson.dumps(value).decode()}" for key, value in arguments.items())


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
