"""Clauses: the same sentence with its clauses in another order or of another form.

What always holds: a form is given only where the sentence has the shape that it wants; words that point back (`it`,
`them`, `so`) never come to stand before what they point to; what is asked (`ask if ...`) is no condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnessctl.augment.phrases import CLOSE, HAN, OPEN
from harnessctl.augment.rewriters.lexicon import begins_whole, capital, is_asked
from harnessctl.augment.rewriters.verbs import BASE_VERBS, gerund

_REF = f"{OPEN}[rq]\\d+{CLOSE}"
_HAN = re.compile(f"[{HAN}]")
_IF_ZH = re.compile(r"^(?:如果|若|假如|倘若|要是)([^，,；;：:]+)[，,]([^，,；;：:]+)$")
_WHEN_ZH = re.compile(r"^(?:当)?([^，,；;：:当]+?)(?:的时候|(?<![同小及按准实随平临])时)[，,]([^，,；;：:]+)$")
_BEFORE_ZH = re.compile(
    r"^(?:在)?([^，,；;：:在]+?)(?:之前|以前|(?<![当目以之])前)[，,](必须|务必|请)?(先)([^，,；;：:]+)$"
)
_DO_NOT_ZH = re.compile(r"^(?:不要|请勿|勿|别)(.+)$")
_POINTS_BACK = re.compile(
    r"\b(?:it|its|them|they|their|so|one|ones|this|these|those|that one|then|such)\b", re.IGNORECASE
)
_FRONTED = re.compile(r"^(If|When|Whenever|Before|After|Unless|Until) ([^,;:()]+), ([^;:()]+)$")
_TRAILING = re.compile(r"^([^;:()]+?) (if|when|whenever|before|after|unless|until) ([^;:()]+)$")
_WITH_TOOL = re.compile(
    rf"^([A-Z][a-z]+) ([^,;:]+?) (?:with|through|by) ({_REF}(?: or {_REF})?)(?=$|,|;| before| when| if| and| only)(.*)$"
)
_USE_TOOL = re.compile(rf"^Use ({_REF}(?: or {_REF})?) to ([a-z]+) ([^;:]+)$")
_DO_NOT = re.compile(r"^Do not ([a-z]+)\b(.*)$")
_MORE_VERBS = re.compile(r"\b(?:or|and|but) ([a-z]+)")
_HEAD = re.compile(r"\b(?:that|who|which|what|where|how|whether|only)\b")
_BEFORE_YOU = re.compile(r"\b([Bb])efore you ([a-z]+)\b(?! (?:and|or))")
_LIST = re.compile(
    r"(?:(?<=^)|(?<=[-–:(] )|(?<=\bon )|(?<=\bof )|(?<=\bfor )|(?<=\babout )|(?<=\bwith )|(?<=\bReturns ))"
    r"((?:[A-Za-z']+(?: [A-Za-z']+){0,2}, )+)([A-Za-z']+(?: [A-Za-z']+){0,2}?)(,? (?:and|or) |, )([A-Za-z']+(?: [A-Za-z']+){0,2}?)"
    r"(?=$|[.;:)]| [-–] | of (?:the|a|an|this) )"
)
#: What begins an order rather than an item; words that name things as often are left out.
_MOSTLY_VERBS = BASE_VERBS - frozenset(
    [
        "answer",
        "base",
        "call",
        "change",
        "charge",
        "cite",
        "claim",
        "close",
        "count",
        "cut",
        "display",
        "draw",
        "edit",
        "end",
        "exchange",
        "format",
        "guess",
        "guide",
        "hand",
        "help",
        "issue",
        "limit",
        "link",
        "list",
        "look",
        "match",
        "measure",
        "note",
        "offer",
        "order",
        "pass",
        "pick",
        "place",
        "plan",
        "point",
        "present",
        "process",
        "promise",
        "quote",
        "record",
        "refund",
        "reply",
        "report",
        "request",
        "return",
        "review",
        "run",
        "share",
        "show",
        "sort",
        "state",
        "stay",
        "support",
        "talk",
        "test",
        "turn",
        "update",
        "upload",
        "use",
        "wait",
    ]
)
_NOT_AN_ITEM = re.compile(r"\b(?:is|are|was|were|has|have|if|when|then|not|no|never|you|it|its|their|they|his|her|and|or|first|last|other|others|more|etc|similar|before|after|that|who|which|only|\w+ed)\b", re.IGNORECASE)  # fmt: skip


_RELATIVE = re.compile(r"\b(?:that|which|who) (?:is|are|was|were|has been|have been)\b", re.IGNORECASE)
_BEFORE_ORDERS = frozenset(["do", "don't", "never", "please", "at", "under", "only", "first", "then", "there"])
#: An order that holds another one, to which what trails may belong: `ask them to wait until ...`.
_INFINITIVE = re.compile(
    rf"\bto (?:{'|'.join(sorted(BASE_VERBS))})\b"
    r"|^(?:Advise|Allow|Ask|Encourage|Expect|Instruct|Invite|Offer|Promise|Remember|Remind|Request|Tell|Urge)\b.* to [a-z]"
)
#: What says that the order of a list is a part of what it says.
_IN_ORDER = re.compile(r"\b(?:follows|following|sequence|steps?|format|template|(?:in|this|that) order)\b|->|→")
_FINITE = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "does",
        "do",
        "did",
        "can",
        "cannot",
        "may",
        "must",
        "should",
        "will",
    ]
)
#: Words that are no part of a name when a capital follows: `The English text`, but not `Search Engine Optimization`.
_SMALL = frozenset(
    ["A", "An", "Any", "At", "By", "Do", "For", "From", "If", "In", "No", "Of", "On", "The", "To", "With"]
)


def forms(body: str) -> Iterator[str]:
    """Other forms of a sentence's `body`, which has no end mark."""
    if _HAN.search(body):
        if not begins_whole(body):
            yield from _chinese(body)
        return
    yield from _conditions(body)
    yield from _tools(body)
    yield from _orders(body)
    yield from _first(body)
    yield from _gerunds(body)
    yield from _lists(body)


def lowered(body: str) -> str:
    """`body` as it goes on inside a sentence: without its capital, but for a name or an abbreviation."""
    word = re.match(r"[A-Z][a-z']*(?![\w.-]*\w)(?P<name> [A-Z][a-z])?", body)
    if word is None or word[0] == "I" or (word["name"] and word[0].split()[0] not in _SMALL):
        return body
    return body[:1].lower() + body[1:]


def stands_alone(clause: str) -> bool:
    """Whether a clause has a verb of its own, so that it may be a sentence: `delivered ones returned` leans on another."""
    words = _RELATIVE.sub("", clause).lower().split()
    return bool(words) and (
        words[0] in BASE_VERBS
        or words[0] in _BEFORE_ORDERS
        or any(word in _FINITE or word.endswith("n't") or _is_third_person(word) for word in words)
    )


def _is_third_person(word: str) -> bool:
    bases = (word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    return word.endswith("s") and any(base in _MOSTLY_VERBS for base in bases)


def _conditions(body: str) -> Iterator[str]:
    """`If X, Y` and `Y if X`."""
    if (found := _FRONTED.match(body)) is not None:
        word, condition, rest = found.groups()
        if not _POINTS_BACK.search(rest) and "," not in rest and not _TRAILING.match(rest):
            yield f"{capital(rest)} {word.lower()} {condition}"
    elif (found := _TRAILING.match(body)) is not None:
        rest, word, condition = found.groups()
        is_question = word in ("if", "when", "whenever") and is_asked(rest)
        whole = not is_question and not _POINTS_BACK.search(condition) and not _HEAD.search(rest)
        if (
            whole
            and "," not in rest
            and ("," not in condition or word == "before")
            and " and " not in rest
            and _starts(rest)
            and not _INFINITIVE.search(rest)
            and rest != "Use"  # of what a description is about, which a sentence of its own would have to name
        ):
            yield f"{capital(word)} {condition}, {lowered(rest)}"


def _starts(body: str) -> bool:
    """Whether `body` begins as an order does."""
    words = body.split(None, 2)
    return bool(words) and (words[0].lower() in BASE_VERBS or words[0] in ("Do", "Never"))


def _tools(body: str) -> Iterator[str]:
    """`Find X with T` and `Use T to find X`."""
    if (
        (found := _WITH_TOOL.match(body)) is not None
        and found[1].lower() in BASE_VERBS
        and found[1] not in ("Use", "Ask")
    ):
        yield f"Use {found[3]} to {found[1].lower()} {found[2]}{found[4]}"
        yield f"With {found[3]}, {found[1].lower()} {found[2]}{found[4]}"
    elif (found := _USE_TOOL.match(body)) is not None and found[2] in BASE_VERBS:
        yield f"{capital(found[2])} {found[3]} with {found[1]}" if "," not in found[3] else body


def _orders(body: str) -> Iterator[str]:
    """`Do not push` as `Refrain from pushing`."""
    if (found := _DO_NOT.match(body)) is None or found[1] not in BASE_VERBS:
        return
    if any(verb in BASE_VERBS for verb in _MORE_VERBS.findall(found[2])) or ";" in found[2]:
        return
    yield f"Refrain from {gerund(found[1])}{found[2]}"
    yield f"Avoid {gerund(found[1])}{found[2]}"


def _first(body: str) -> Iterator[str]:
    """`Look at X first` as `First look at X`."""
    if body.endswith(" first") and not re.search(r"[,;:]", body) and _starts(body) and body[0].isupper():
        yield f"First {lowered(body.removesuffix(' first'))}"


def _gerunds(body: str) -> Iterator[str]:
    """`before you reply` as `prior to replying`."""
    found = _BEFORE_YOU.search(body)
    if found is not None and found[2] in BASE_VERBS:
        for words in ("prior to", "ahead of"):
            text = capital(words) if found[1] == "B" else words
            yield f"{body[: found.start()]}{text} {gerund(found[2])}{body[found.end() :]}"


def _lists(body: str) -> Iterator[str]:
    """`a, b and c` as `b, c and a` and `c, b and a`."""
    found = _LIST.search(body)
    if found is None or _IN_ORDER.search(body):
        return
    before = re.split(r"[.;:()–]", body[: found.start()])[-1]
    if "," in before:  # within a longer list: `a poster, piece of art, or design`
        return
    items = [*found[1].removesuffix(", ").split(", "), found[2], found[4]]
    if len(items) < 3 or any(_NOT_AN_ITEM.search(item) or item.split()[0].lower() in _MOSTLY_VERBS for item in items):
        return
    if found.start() == 0 and items[0][:1].isupper():
        return
    for turned in (items[1:] + items[:1], items[::-1], items[2:] + items[:2]):
        new = ", ".join(turned[:-1]) + found[3] + turned[-1]
        yield body[: found.start()] + new + body[found.end() :]


def _chinese(body: str) -> Iterator[str]:
    """`如果X，Y` as `X时，Y` and back; `X之前，先Y` and `先Y，X之前…`; `不要X` as `请勿X`."""
    if (found := _IF_ZH.match(body)) is not None:
        condition, rest = found.groups()
        yield f"{condition}时，{rest}"
        yield f"当{condition}的时候，{rest}"
    elif (found := _WHEN_ZH.match(body)) is not None:
        condition, rest = found.groups()
        yield f"如果{condition}，{rest}"
        yield f"当{condition}的时候，{rest}"
        yield f"若{condition}，{rest}"
    if (found := _BEFORE_ZH.match(body)) is not None:
        what, must, _, rest = found.groups()
        yield f"在{what}之前，{must or ''}首先{rest}"
        yield f"{what}以前，{must or ''}先{rest}"
    if (found := _DO_NOT_ZH.match(body)) is not None:
        yield f"请勿{found[1]}"
        yield f"请不要{found[1]}"
        yield f"切勿{found[1]}"
        yield f"避免{found[1]}"
