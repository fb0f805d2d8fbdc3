"""message-frame: a line before what the viewer said, and a tag around it. Paper [C.2], 'message processing'.

What always holds: a line asks for nothing and holds no number, no name and nothing that a hook of the harness forbids; the
viewer's words stand as they did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harnessctl.augment.languages import languages
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Framing, HarnessState

LEADS = {
    "en": (
        "What came in:",
        "New input:",
        "This just arrived.",
        "Now, from the audience side:",
        "Incoming:",
        "Here is what was just received.",
        "Received a moment ago:",
        "The current input follows.",
        "Next in line:",
        "Up next:",
        "What follows was written just now.",
        "Latest input:",
    ),
    "zh": (
        "刚收到的内容：",
        "新的输入：",
        "以下内容刚刚到达。",
        "当前输入如下：",
        "接下来是：",
        "刚才收到：",
        "最新内容：",
        "以下是刚写下的内容。",
    ),
}
#: What a tag may be called, as in the manifests of hooks.
TAG = r"[a-z][a-z0-9_-]*"
#: A line of an envelope is text and no reference: a name in it would stay when what it names is renamed.
LEAD = r"[^`\n]+"
TAGS = (
    "input",
    "incoming",
    "message",
    "event",
    "current",
    "received",
    "turn",
    "new-input",
    "inbox",
    "said",
    "live",
    "latest",
)


class MessageFrame:
    """Targets: `lead` and `wrap`, each drawn for by itself. A lead comes from `leads` too, a tag from `tags`."""

    name = "message-frame"
    dimension: Dimension = "message"
    stage: Stage = "behave"
    keeps_difficulty = True
    options: Mapping[str, Any] = {"leads": [], "tags": list(TAGS)}
    patterns: Mapping[str, str] = {"tags": TAG, "leads": LEAD}
    reads: frozenset[str] = frozenset()

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("lead", "wrap")

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        framing = draft.changes.framing or draft.state.prompt.framing or Framing()
        if target == "lead":
            own = [[str(line)] for line in settings.options.get("leads", ())]
            leads = [lead for lead in [*_leads(draft.state), *own] if lead != framing.lead]
            if not leads:
                return False
            framing = msgspec.structs.replace(framing, lead=stream.choice(leads))
        else:
            tags = [tag for tag in settings.options.get("tags", TAGS) if tag != framing.wrap]
            if not tags:
                return False
            framing = msgspec.structs.replace(framing, wrap=stream.choice(tags))
        draft.changes.framing = framing
        return True


@once
def _leads(state: HarnessState) -> list[list[str]]:
    """Lines in the languages of `state` that none of its hooks would forbid in a reply that repeats them."""
    patterns: list[re.Pattern[str] | None] = []
    phrases: list[str] = []
    for check in _checks([hook.check for hook in state.hooks]):
        if isinstance(must_not := check.get("must_not"), str):
            patterns.append(_compiled(must_not))
        phrases += [str(phrase).lower() for phrase in check.get("phrases") or ()]
    return [
        [line]
        for language in languages(state)
        for line in LEADS[language]
        if not any(pattern is not None and pattern.search(line) for pattern in patterns)
        and not any(phrase in line.lower() for phrase in phrases)
    ]


def _checks(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from _checks(member)


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None


OPERATOR = MessageFrame()
