"""Frames: words around a sentence that add nothing to what it asks for; used where too few other wordings are found.

What always holds: a frame adds no modal word, no number, no order and no condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnessctl.augment.operator import TextKind
from harnessctl.augment.phrases import HAN
from harnessctl.augment.rewriters.clauses import lowered
from harnessctl.augment.rewriters.lexicon import third_persons
from harnessctl.augment.rewriters.verbs import BASE_VERBS

_HAN = re.compile(f"[{HAN}]")
_RULE = ("Note: {}", "Please note: {}", "Remember: {}", "Keep in mind: {}", "In short: {}", "The rule here: {}", "Bear in mind: {}", "Take note: {}", "As a reminder: {}")  # fmt: skip
_MESSAGE = ("Note: {}", "Please note: {}", "In short: {}", "Attention: {}", "To be clear: {}", "Just so you know: {}", "Notice: {}", "For your attention: {}", "Put briefly: {}")  # fmt: skip
_RULE_ZH = ("请注意：{}", "请记住：{}", "规则：{}", "要点：{}", "提示：{}", "说明：{}", "简而言之：{}", "请留意：{}", "注意：{}", "温馨提示：{}")  # fmt: skip
_DOES = ("This {}", "It {}", "What it does: {}", "In short: {}", "Its purpose: {}", "Its job: {}", "Summary: {}", "In brief: {}", "Purpose: {}")  # fmt: skip
_THING = ("Here: {}", "States {}", "Specifies {}", "Meant here: {}", "That is, {}", "In short: {}", "Denotes {}", "Indicates {}", "In other words: {}")  # fmt: skip
_TOPIC = ("Covers {}", "About: {}", "In short: {}", "Topic: {}", "That is, {}", "In brief: {}", "In other words: {}", "Put briefly: {}", "To sum up: {}", "Namely: {}")  # fmt: skip
_ANY = ("In short: {}", "Meant here: {}", "That is, {}", "In brief: {}", "In other words: {}", "Put briefly: {}", "To sum up: {}", "Namely: {}")  # fmt: skip
_THING_ZH = ("即：{}", "说明：{}", "简而言之：{}", "用途：{}", "概述：{}", "作用：{}", "功能：{}", "简述：{}")
_MESSAGE_ZH = ("请注意：{}", "提示：{}", "提醒：{}", "注意：{}", "简而言之：{}", "说明：{}", "温馨提示：{}", "请留意：{}", "请知悉：{}")  # fmt: skip
_HEADING = ("{} here", "About: {}", "{} in short", "Overview: {}", "Section: {}", "Part: {}", "{} at a glance", "Topic: {}")  # fmt: skip
_HEADING_ZH = ("{}说明", "关于{}", "{}概述", "{}要点", "{}部分", "本节：{}", "{}一览", "{}内容", "{}简述")


_NO_SUBJECT = frozenset(
    [
        "only",
        "solely",
        "exclusively",
        "no",
        "not",
        "just",
        "with",
        "without",
        "by",
        "for",
        "from",
        "in",
        "on",
        "at",
        "to",
        "of",
        "next",
        "after",
        "before",
        "if",
        "when",
        "where",
    ]
)
#: Nouns that look like verbs in the third person.
_NOUNS = frozenset(
    [
        "orders",
        "offers",
        "answers",
        "questions",
        "requests",
        "returns",
        "prices",
        "uses",
        "names",
        "lists",
        "links",
        "notes",
    ]
)


def _does(first: str) -> bool:
    """Whether a description that begins with this word says what a thing does: `Returns ...`, `Replaces ...`."""
    if first in third_persons():
        return True
    bases = (first.removesuffix("s"), first.removesuffix("es"), first.removesuffix("ies") + "y")
    return first.endswith("s") and first not in _NOUNS and any(base in BASE_VERBS for base in bases)


_FINITE = re.compile(r"(?:\b(?:is|are|was|were|must|may|can|should|will|cannot|has|have)|n't)\b", re.IGNORECASE)
_OPENS_CLAUSE = re.compile(r"[,;:(–—]|\b(?:that|which|who|what|where|when|if|how|why|whether|unless|until|before|after|as|to)\b", re.IGNORECASE)  # fmt: skip


def _is_statement(body: str) -> bool:
    """Whether a sentence that begins with a word like a verb has a verb of its own later: `Name tags are not sold`."""
    head = body[: found.start()] if (found := _OPENS_CLAUSE.search(body)) else body
    return not head.startswith(("Don", "Do ")) and _FINITE.search(head) is not None


def framed(body: str, kind: TextKind, *, heading: bool) -> Iterator[str]:
    """`body`, which has no end mark, in each frame that fits it."""
    han = _HAN.search(body) is not None
    first = body.split(None, 1)[0] if body.split() else ""
    if heading:
        yield from _put(_HEADING_ZH if han else _HEADING, body)
    elif han:
        yield from _put({"description": _THING_ZH, "message": _MESSAGE_ZH}.get(kind, _RULE_ZH), body)
    elif kind != "description":
        if first.lower() in BASE_VERBS and first[0].isupper() and not _is_statement(body):
            yield f"Please {lowered(body)}"
        yield from _put(_MESSAGE if kind == "message" else _RULE, body)
    elif first.lower() in ("a", "an", "the", "what", "how", "which", "where", "why"):
        small = first[0].islower()
        yield from _put(_THING, lowered(body), small=small)
    elif first.lower() in _NO_SUBJECT:
        yield from _put(_ANY, lowered(body), small=first[0].islower())
    elif _does(first.lower()):
        yield from _put(_DOES, lowered(body), small=first[0].islower())
    else:
        yield from _put(_TOPIC, lowered(body), small=first[0].islower())


def _put(frames: tuple[str, ...], body: str, *, small: bool = False) -> Iterator[str]:
    for frame in frames:
        text = frame.replace("{}", body)
        yield text[:1].lower() + text[1:] if small else text
