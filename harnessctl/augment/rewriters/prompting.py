"""Prompting: what a model is asked for other wordings, and its answer read strictly.

What always holds: a reference or quotation is sent as a numbered placeholder and must come back exactly once.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from harnessctl.augment.operator import TextKind
from harnessctl.augment.phrases import CLOSE, OPEN
from harnessctl.augment.rewriters.atoms import Atoms
from harnessctl.bundle.text import Text
from harnessctl.runtime.reasoning import split_reasoning

#: Raised whenever what is asked changes: it is part of the cache's key.
PROMPT_VERSION = 1

_LEFT, _RIGHT = "⟦", "⟧"
_MARK = re.compile(f"{OPEN}[rq]\\d+{CLOSE}")
_PLACEHOLDER = re.compile(f"{_LEFT}(\\d+){_RIGHT}")
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_KINDS: dict[TextKind, str] = {
    "rule": "a rule that an assistant must follow",
    "description": "a description of a tool, a parameter or a skill",
    "message": "a message to an assistant that broke a rule or met an obstacle",
    "heading": "a heading or a line before a list of rules",
    "lead": "an introduction to a list of rules; keep its line breaks and headings' marks",
}
_SYSTEM = """You reword instructions for AI assistants without changing what they mean.
Reply with one JSON object and nothing else: {"wordings": ["...", "..."]}.
In every wording:
- keep each placeholder such as ⟦1⟧ exactly once, unchanged; you may move it;
- keep every number, unit, negation (not, no, never, without, only, except), obligation (must, need), permission (may, can), \
bound (at most, at least, under, over), quantity (all, any, each), condition (if, when, unless) and order (before, after, \
first, then); add none;
- stay in the language of the text, keep line breaks and marks, add no markup, names, quotation marks or examples;
- use other words and another build of the sentence wherever that is natural; make the wordings unlike each other."""


class Answer(msgspec.Struct):
    """What a model must answer with."""

    wordings: list[str]


class Sheet:
    """One text with its placeholders. `can_be_asked` is false for a text that has such brackets of its own."""

    def __init__(self, text: Text, kind: TextKind) -> None:
        self._atoms = Atoms(text)
        self._marks = _MARK.findall(self._atoms.string)
        self._kind = kind
        self.can_be_asked = not any(_LEFT in part or _RIGHT in part for part in text if isinstance(part, str))

    def messages(self, k: int) -> list[dict[str, Any]]:
        """The chat that asks for `k` wordings."""
        numbers = iter(range(1, len(self._marks) + 1))
        shown = _MARK.sub(lambda found: f"{_LEFT}{next(numbers)}{_RIGHT}", self._atoms.string)
        asked = {
            "count": k,
            "text": shown,
            "the text is": _KINDS[self._kind],
            "placeholders": {
                f"{_LEFT}{number}{_RIGHT}": self._meaning(mark) for number, mark in enumerate(self._marks, 1)
            },
        }
        return [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": orjson.dumps(asked).decode()},
        ]

    def _meaning(self, mark: str) -> str:
        part = self._atoms.text(mark)[0]
        if isinstance(part, str):
            return part
        return "a number" if part.kind == "limit" else f"the {part.kind} `{part.name}`"

    def text(self, wording: str) -> Text | None:
        """A wording as a Text; null when a placeholder is missing, doubled or unknown."""
        numbers = [int(found) for found in _PLACEHOLDER.findall(wording)]
        if sorted(numbers) != list(range(1, len(self._marks) + 1)) or OPEN in wording or CLOSE in wording:
            return None
        return self._atoms.text(_PLACEHOLDER.sub(lambda found: self._marks[int(found[1]) - 1], wording))


def read_answer(content: str | None) -> list[str]:
    """The wordings in a model's reply; ValueError says what is wrong with it. A code fence around it is let pass."""
    said, _ = split_reasoning(content or "")
    fenced = _FENCE.fullmatch(said or "")
    try:
        answer = msgspec.json.decode((fenced[1] if fenced else said or "").strip(), type=Answer)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"not the JSON that was asked for: {error}") from error
    found = [wording.strip("\n") for wording in answer.wordings if wording.strip()]
    if not found:
        raise ValueError("no wordings in it")
    return found
