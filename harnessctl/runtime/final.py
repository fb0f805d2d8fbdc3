"""Final tools: a tool that ends the loop, and what is said then."""

from __future__ import annotations

import re

import msgspec

from harnessctl.records.trajectory import Route
from harnessctl.runtime.pending import PendingCall, text_of

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


class Final(msgspec.Struct, frozen=True):
    """A final tool succeeded: what it says, and whether arguments that the model wrote are part of it."""

    reply: str
    route: Route
    has_arguments: bool


def final_of(pending: PendingCall) -> Final | None:
    """What a final tool says: its reply with `{name}` replaced by that argument; None for any other tool.

    Braces around anything but a parameter's name stay. An argument that was left out leaves nothing.
    """
    tool = pending.tool
    if tool is None or tool.final is None:
        return None
    template: str = tool.final.get("reply", "")
    properties = tool.parameters.get("properties", {})
    has_arguments = False

    def value(found: re.Match[str]) -> str:
        nonlocal has_arguments
        if found[1] not in properties:
            return found[0]
        has_arguments = True
        given = pending.args.get(found[1])
        return "" if given is None else text_of(given)

    reply = _PLACEHOLDER.sub(value, template).strip()
    return Final(reply, tool.final.get("route", "public"), has_arguments)
