"""Wording: law h. A paraphrase keeps references, numbers, negation and modality; and stays one text of the same form.

What always holds: the check reads words, not meaning. It counts the words of each class (`meaning`), sees which
references a negation, an order or an exception governs and which number a bound stands beside, and refuses whatever
differs. It is pure, remembers what it was asked, and errs on the side of refusing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

import msgspec

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.meaning import BOUNDS, BOUNDS_OF_NUMBERS, SCOPED, SENSES, SIGNS, UNITS
from harnessctl.augment.laws.places import all_texts
from harnessctl.augment.once import once
from harnessctl.augment.phrases import CLOSE, HAN, OPEN, TOKEN, harmless
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Ref, Text
from harnessctl.bundle.variation import Variation

#: How many pairs of texts, and texts, are remembered: more than a large harness has wordings.
_PAIRS_KEPT = 1 << 14
_TEXTS_KEPT = 1 << 13

_NEAR = 4
_SPARE_CHARS = 20

_QUOTED = re.compile(
    r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"
    r"|\"[^\"\n]*\"|“[^”\n]*”|‘[^’\n]*’|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|(?<![\w'])'[^'\n]+'(?![\w'])",
    re.DOTALL,
)
_VERBATIM = re.compile(
    r"https?://[^\s)>\]]+|[\w.+-]+@[\w-]+\.[\w.]+|\{\{.*?\}\}|\{%.*?%\}|</?[A-Za-z][^<>\n]*>", re.DOTALL
)
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9_])(?:[A-Za-z0-9]*_\w*|[A-Za-z]+\d\w*|\d+[A-Za-z]{3,}\w*|[a-z]+[A-Z]\w*)", re.ASCII
)
_OPAQUE_OR_IDENTIFIER = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}|(?:{_IDENTIFIER.pattern})", re.ASCII)
_HYPHENATED = re.compile(r"(?<![\w-])[A-Za-z]+(?:-[A-Za-z]+)+(?![\w-])")
_MARKUP = re.compile(
    r"\*\*|__|~~|(?<!\w)[*_](?=\w)|^\s{0,3}(?:#{1,6} |[-*+] |\d+[.)] |> )|[`|<>{}\[\]$\\]|https?:", re.MULTILINE
)
_LINE_LEAD = re.compile(r"\s*(?:#{1,6} |[-*+] |\d+[.)] |>+ ?|\|)?")
_OPAQUE = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")
_QUESTION = re.compile("[?？]")
_HAS_HAN = re.compile(f"[{HAN}]")
_CAN_NOT = re.compile(r"\bcan(?:['’]t|not)\b")
_WILL_NOT = re.compile(r"\bwon['’]t\b")
_NOT = re.compile(r"n['’]t\b")
_BREAKS = frozenset(",;:.!?()\n，；：。！？、（）") | {"and", "but", "–", "—"}
_PAIRS = ("“”", "‘’", "「」", "『』", "《》", "()", "（）", "[]", "{}")


class _Profile(msgspec.Struct):
    """What of a text must stay as it is; `counts` maps a label (`negation "not"`) to how often it is there."""

    counts: dict[str, int]
    chars: int
    lines: list[str]
    questions: int
    han: bool
    unbalanced: list[str]
    hyphenated: frozenset[str]
    words: int


def wording_faults(before: Text, after: Text) -> list[str]:
    """What `after` does not keep of `before`, in words; empty when it is a paraphrase that law h accepts."""
    return list(_faults(tuple(before), tuple(after)))


@lru_cache(maxsize=_PAIRS_KEPT)
def _faults(before: tuple[str | Ref, ...], after: tuple[str | Ref, ...]) -> tuple[str, ...]:
    if before == after:
        return ()
    if (was := _chars(before)) * 2 + _SPARE_CHARS < (now := _chars(after)):  # nobody reads ten megabytes to refuse them
        return (f"length: {was} characters before, {now} after",)
    old, new = _profile(before), _profile(after)
    faults: list[str] = []
    if not new.words and old.words:
        return ("it is empty",)
    if old.counts != new.counts:
        for label in old.counts.keys() | new.counts.keys():
            was, now = old.counts.get(label, 0), new.counts.get(label, 0)
            if was != now:
                faults.append(f"{label}: {was} before, {now} after")
        faults.sort()
    faults += _form_faults(old, new)
    return tuple(faults)


def _form_faults(old: _Profile, new: _Profile) -> list[str]:
    """What differs in form: length, lines, markup, quotes, questions, language."""
    faults: list[str] = []
    if not old.chars / 2 - _SPARE_CHARS // 4 <= new.chars <= 2 * old.chars + _SPARE_CHARS:
        faults.append(f"length: {old.chars} characters before, {new.chars} after")
    if old.lines != new.lines:
        what = f"{len(old.lines)} before, {len(new.lines)} after" if len(old.lines) != len(new.lines) else "other marks"
        faults.append(f"lines: {what}")
    if old.questions != new.questions:
        faults.append(f"questions: {old.questions} before, {new.questions} after")
    if old.han != new.han:
        faults.append("language: Chinese characters " + ("are gone" if old.han else "are new"))
    faults += [f"unbalanced {pair}" for pair in new.unbalanced if pair not in old.unbalanced]
    faults += [f"a name that was not there: {word}" for word in sorted(new.hyphenated - old.hyphenated)]
    return faults


@lru_cache(maxsize=_TEXTS_KEPT)
def _profile(text: tuple[str | Ref, ...]) -> _Profile:
    counts: Counter[str] = Counter()
    flat_parts: list[str] = []
    for part in text:
        if isinstance(part, str):
            flat_parts.append(harmless(part))
        else:
            counts[f"reference {part.kind} {part.name}"] += 1
            flat_parts.append(f"{OPEN}{part.kind}:{part.name}{CLOSE}")
    flat = "".join(flat_parts)
    words = sum(1 for token in TOKEN.finditer(flat) if token[0][0].isalnum() or token[0][0] == OPEN)

    def keep(found: re.Match[str]) -> str:
        counts[f"quoted {found[0].replace(OPEN, '<').replace(CLOSE, '>')}"] += 1
        return f"{OPEN}quoted{CLOSE}"

    prose = _VERBATIM.sub(keep, _QUOTED.sub(keep, flat))
    visible = _OPAQUE.sub(OPEN, prose)
    for found in _IDENTIFIER.finditer(visible):
        counts[f"name {found[0]}"] += 1
    for found in _MARKUP.finditer(visible):
        counts[f"markup {found[0].strip()}"] += 1
    _count_meaning(prose, counts)
    return _Profile(
        counts=dict(counts),
        chars=_chars(text),
        lines=[_LINE_LEAD.match(line)[0].strip() for line in flat.split("\n")],  # pyrefly: ignore
        questions=len(_QUESTION.findall(visible)),
        han=_HAS_HAN.search(visible) is not None,
        unbalanced=_unbalanced(flat),
        hyphenated=frozenset(word.lower() for word in _HYPHENATED.findall(visible)),
        words=words,
    )


def _chars(text: tuple[str | Ref, ...]) -> int:
    """The length of a text, a reference counted as a short name."""
    return sum(len(part) if isinstance(part, str) else 8 for part in text)


def _count_meaning(prose: str, counts: Counter[str]) -> None:
    """Count the words of each class, the numbers with their units, and what is governed by what."""
    plain = unicodedata.normalize("NFKC", _OPAQUE_OR_IDENTIFIER.sub(_hide_identifier, prose)).lower()
    plain = _NOT.sub(" not", _WILL_NOT.sub("will not", _CAN_NOT.sub("can not", plain)))
    plain = plain.replace("\n", " \n ")
    tokens = [found[0] for found in TOKEN.finditer(plain)]
    marks: dict[
        int, tuple[str, bool]
    ] = {}  # where a class's word ends: the last of its classes, and whether it is post
    numbers: dict[int, str] = {}
    index = 0
    while index < len(tokens):
        token = tokens[index]
        size = 1
        if token[0].isdigit():
            numbers[index] = _number(token)
        elif token.startswith(f"{OPEN}limit"):
            numbers[index] = token[1:-1]
        elif (found := SENSES.at(tokens, index)) is not None:
            size, sense = found
            last = index + size - 1
            if sense.number is not None:
                if not (token == "second" and index - 1 in numbers):  # 5 second: a unit
                    numbers[last] = sense.number
            elif sense.classes:
                marks[last] = (sense.classes[-1], sense.post)
                for name in sense.classes:
                    if name not in BOUNDS_OF_NUMBERS:
                        counts[f"words for {name!r}"] += 1
        index += size
    for at, number in numbers.items():
        if not number.startswith("limit:"):
            counts[f"number {number}"] += 1
        unit = _unit(tokens, at)
        if unit:
            counts[f"number {number} in {unit}"] += 1
    for at, (name, post) in marks.items():
        if name in BOUNDS:
            near = _nearest(numbers, at, tokens)
            if near is not None and not (name == "about" and near == "1"):  # about one item: of it
                counts[f"{name!r} of {near}"] += 1
        elif name in SCOPED:
            for ref in _governed(tokens, at, marks, post=post):
                counts[f"{name!r} governs {ref}"] += 1


def _hide_identifier(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == OPEN else f"{OPEN}quoted{CLOSE}"


def _number(token: str) -> str:
    """A number written in digits in one form: `1,000` is 1000, `2.50` is 2.5."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", token):
        token = token.replace(",", "")
    if re.fullmatch(r"\d+\.\d+", token):
        token = token.rstrip("0").rstrip(".")
    return token


def _unit(tokens: list[str], at: int) -> str | None:
    """The unit of the number at `at`, after it or (a currency sign) before it."""
    if at and tokens[at - 1] in SIGNS:
        return SIGNS[tokens[at - 1]]
    after = at + 1
    if after < len(tokens) and tokens[after] == "-":
        after += 1
    found = UNITS.at(tokens, after) if after < len(tokens) else None
    return found[1] if found else None


def _nearest(numbers: dict[int, str], at: int, tokens: list[str]) -> str | None:
    """The number that the bound at `at` is of: the next within a few words, else the last before it."""
    for step in range(1, _NEAR + 1):
        if at + step < len(tokens) and tokens[at + step] in _BREAKS:
            break
        if at + step in numbers:
            return numbers[at + step]
    for step in range(1, _NEAR + 3):
        if at - step >= 0 and tokens[at - step] in _BREAKS:
            break
        if at - step in numbers:
            return numbers[at - step]
    return None


def _governed(tokens: list[str], at: int, marks: dict[int, tuple[str, bool]], *, post: bool) -> list[str]:
    """The references from the word at `at` to the end of its clause, or from its beginning where the word is `post`."""
    step = -1 if post else 1
    found: list[str] = []
    at += step
    while 0 <= at < len(tokens) and tokens[at] not in _BREAKS and not (at in marks and marks[at][0] in SCOPED | {"if"}):
        if tokens[at][0] == OPEN and tokens[at] != f"{OPEN}quoted{CLOSE}":
            found.append(tokens[at][1:-1])
        at += step
    return found


def _unbalanced(flat: str) -> list[str]:
    """The quotes and brackets that are not in pairs."""
    out = ['"'] if flat.count('"') % 2 else []
    if flat.count("`") % 2:
        out.append("`")
    return out + [pair for pair in _PAIRS if pair != "‘’" and flat.count(pair[0]) != flat.count(pair[1])]


def check(parent: HarnessState, variation: Variation) -> list[Broken]:
    """Law h on each text that `variation` changed of `parent`; a verbatim rule or item is not to be changed at all."""
    changed = variation.changes.texts
    if not changed:
        return []
    texts, verbatim = _texts(parent)
    broken: list[Broken] = []
    for place, after in changed.items():
        before = texts.get(place)
        if before is None:
            broken.append(Broken("h", place, "the parent has no such text"))
        elif place in verbatim:
            broken.append(Broken("h", place, "it is verbatim and was reworded"))
        else:
            broken += [Broken("h", place, reason) for reason in wording_faults(before, after)]
    return broken


def _verbatim_places(parent: HarnessState) -> frozenset[str]:
    rules = (f"skills/{skill.name}/rules/{rule.id}" for skill in parent.skills for rule in skill.rules if rule.verbatim)
    items = (
        f"prompt/{block.id}/items/{item.id}" for block in parent.prompt.blocks for item in block.items if item.verbatim
    )
    return frozenset((*rules, *items))


@once
def _texts(parent: HarnessState) -> tuple[dict[str, Text], frozenset[str]]:
    """The parent's texts by place, and the places of those that are verbatim."""
    return dict(all_texts(parent)), _verbatim_places(parent)
