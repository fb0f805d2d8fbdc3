"""Answer: what a judge replied, read: both scores with the reason, or why there are none.

What always holds: nothing is guessed. A score is a number of the scale, under the item's own id; JSON has no NaN, and
`true` is no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnessctl.evaluate.judging.agreement import STEPS
from harnessctl.records.vote import Cause
from harnessctl.runtime.model_json import read_json
from harnessctl.runtime.tools.http import MISSING, at_pointer

_SHOWN = 80


@dataclass(slots=True, frozen=True)
class Answer:
    """Scores of the steps of each dimension [4.2]."""

    accuracy: float
    effectiveness: float
    reason: str


@dataclass(slots=True, frozen=True)
class NoAnswer:
    """Why there is no score; `words` also tell the judge what to mend."""

    cause: Cause
    words: str


def read_answer(text: str, item: str, pointers: Mapping[str, str]) -> Answer | NoAnswer:
    """The answer in `text` on the item of this id; `pointers` say where the judge's harness has each score."""
    text = text.strip()
    if not text:
        return NoAnswer("nothing", "it is empty; answer with one JSON object")
    value, fault = read_json(text)
    if fault:
        looks_like_json = text[:1] in "{[" or "{" in text
        cause: Cause = "broken-json" if looks_like_json else "prose"
        return NoAnswer(cause, f"it is no JSON object ({fault}): {_shown(text)}; answer with one JSON object alone")
    if not isinstance(value, dict):
        return NoAnswer("prose", f"it is no JSON object: {_shown(text)}; answer with one JSON object alone")
    if "id" not in value:
        return NoAnswer("missing", f"it has no id; this item is {item!r}")
    if value["id"] != item:
        return NoAnswer("other-item", f"its id is {_shown(value['id'])}, and this item is {item!r}")
    scores: dict[str, float] = {}
    for name, scale in STEPS.items():
        found = at_pointer(value, pointers.get(name, f"/{name}"))
        if found is MISSING or found is None:
            return NoAnswer("missing", f"it has no {name}")
        if isinstance(found, bool) or not isinstance(found, (int, float)) or found not in scale:
            allowed = ", ".join(f"{step:g}" for step in scale)
            return NoAnswer("out-of-range", f"its {name} is {_shown(found)}; allowed {allowed}")
        scores[name] = float(found)
    reason = value.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        return NoAnswer("no-reason", "it gives no reason")
    return Answer(scores["accuracy"], scores["effectiveness"], reason.strip())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
