"""Reasoning: what a model thinks is kept apart from what it says, however the endpoint hands it over."""

from __future__ import annotations

import re

_CLOSED = re.compile(r"<think>(.*?)</think>\s*", re.DOTALL)


def split_reasoning(content: str) -> tuple[str, str | None]:
    """(what is said, what was thought or None).

    `<think>...</think>` is cut out wherever it stands; text before a lone `</think>` was thought too (the template had
    opened it), and so was all that follows a `<think>` that was never closed.
    """
    if "think>" not in content:
        return content, None
    thoughts: list[str] = []

    def take(found: re.Match[str]) -> str:
        thoughts.append(found[1])
        return ""

    said = _CLOSED.sub(take, content)
    before, lone_close, after = said.partition("</think>")
    if lone_close:
        thoughts.insert(0, before)
        said = after
    said, lone_open, rest = said.partition("<think>")
    if lone_open:
        thoughts.append(rest)
    thought = "\n".join(text.strip() for text in thoughts if text.strip())
    return said.strip(), thought or None
