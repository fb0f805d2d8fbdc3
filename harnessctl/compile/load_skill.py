"""load_skill: the tool that the compiler adds to a harness with skills that declares none of its own."""

from __future__ import annotations

from typing import Any

LOAD_SKILL = "load_skill"
DESCRIPTION = "Load a skill: the instructions for one kind of message. Load the one that fits before you reply."
#: The enum of the argument is filled in from the skills on offer when a bundle is surfaced.
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"skill": {"type": "string"}},
    "required": ["skill"],
    "additionalProperties": False,
}


def outline() -> dict[str, Any]:
    """Its outline, as Tools manifests give them."""
    return {
        "name": LOAD_SKILL,
        "group": "flow-control",
        "tags": [],
        "effect": "none",
        "version": "1.0.0",
        "parameters": PARAMETERS,
        "builtin": LOAD_SKILL,
        "mcp": None,
        "place": ["", 0, 0],
    }


def state_tool() -> dict[str, Any]:
    """The tool as a HarnessState keeps it, in plain JSON."""
    return {
        "name": LOAD_SKILL,
        "description": [DESCRIPTION],
        "group": "flow-control",
        "parameters": PARAMETERS,
        "run": {"builtin": LOAD_SKILL},
    }
