"""Outcome: one log line for each request, with counts and names of the harness only; nothing that a viewer wrote."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("live-stream.outcome")


def note(names: Mapping[str, Any]) -> None:
    """Logs skills, tools, failed calls, rounds and the length of the reply as one JSON object."""
    calls = names["calls"]()
    log.info(
        json.dumps(
            {
                "skills": names["skills_loaded"],
                "tools": [call["name"] for call in calls],
                "failed": sum(call["status"] != "ok" for call in calls),
                "rounds": names["round"],
                "reply_chars": len(names["reply"]),
            }
        )
    )


note.inline = True
