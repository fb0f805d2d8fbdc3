"""Reasoning: how many of the sampled ids are thought, between `<think>` and `</think>`.

The count is of ids as they were sampled, not of the text encoded anew: a policy need not say a text in the tokenizer's
own pieces. An id that holds a part of a tag belongs to the tag.
"""

from __future__ import annotations

import re

from harnessctl.data.encoding import Decoder

_OPEN, _CLOSE = "<think>", "</think>"
_CLOSED = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def reasoning_tokens(ids: list[int], decoder: Decoder) -> int:
    """How many of an output's ids are reasoning; its end id, if it has one, never is.

    As `runtime.reasoning` reads texts: what was never closed was thought to the end, and what stands before a lone
    `</think>` was thought too.
    """
    if ids and ids[-1] == decoder.end_id:
        ids = ids[:-1]
    text = decoder.decode(ids)
    if "think>" not in text:
        return 0
    count = 0
    for start, end in _thoughts(text):
        # The id after the last one that still lacks the first character behind the thought.
        last = len(ids) if end == len(text) else _needed(ids, end + 1, decoder) - 1
        count += max(0, last - _needed(ids, start, decoder))
    return count


def _thoughts(text: str) -> list[tuple[int, int]]:
    """Where reasoning stands, as half-open ranges of characters in ascending order."""
    closed = [match.span(1) for match in _CLOSED.finditer(text)]
    edges = [0, *(place for match in _CLOSED.finditer(text) for place in match.span()), len(text)]
    rest = list(zip(edges[::2], edges[1::2], strict=True))
    found = list(closed)
    for number, (start, end) in enumerate(rest):
        lone = text.find(_CLOSE, start, end)
        if lone >= 0:
            found += [*rest[:number], (start, lone)]
            rest = [(lone + len(_CLOSE), end), *rest[number + 1 :]]
            break
    for number, (start, end) in enumerate(rest):
        lone = text.find(_OPEN, start, end)
        if lone >= 0:
            found += [(lone + len(_OPEN), end), *rest[number + 1 :]]
            break
    return sorted(stretch for stretch in found if stretch[0] < stretch[1])


def _needed(ids: list[int], size: int, decoder: Decoder) -> int:
    """How many ids it takes to have `size` characters; a character whose bytes are not all there does not count."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(decoder.decode(ids[:middle]).rstrip("\ufffd")) >= size:
            high = middle
        else:
            low = middle + 1
    return low
