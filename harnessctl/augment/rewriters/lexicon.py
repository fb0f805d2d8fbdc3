"""Lexicon: phrases that may stand for each other, read from `english.txt` and `chinese.txt` beside this file.

What always holds: the longest phrase at a place is taken; a phrase under a guard is taken only where its guard holds; an
alternative takes over the capital of what it stands for and puts `a` or `an` before it right.

A line of those files is one of:

    first = second = third          each may stand for each other
    from > to | or this             one way only
    @ verify verifies verifying verified verified > check checks checking checked checked      a verb in its five forms
    ! term                          left whole, so that nothing in it is taken for another phrase
    # comment

Before a phrase, `^` says that it stands where an order or an infinitive begins (`Say ...`, `to say`, `; say`), `<` that
it begins the sentence, `|` that it is the whole of it. `{}` in a phrase is a reference and `{q}` a quotation; both are kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from harnessctl.augment.laws.meaning import IDIOMS
from harnessctl.augment.phrases import OPEN, TOKEN, PhraseTable

_FILES = ("english.txt", "chinese.txt")
_PACKAGE = "harnessctl.augment.rewriters"
_HOLE, _QUOTED = "\ue003", "\ue002"
_HOLES = re.compile(r"\{q?\}")
_ORDER_AFTER = frozenset(
    [
        ";",
        ":",
        ".",
        ",",
        "(",
        "-",
        "–",
        "—",
        "and",
        "or",
        "then",
        "never",
        "not",
        "only",
        "to",
        "first",
        "please",
        "also",
        "you",
        "don't",
        "，",
        "。",
        "；",
        "：",
    ]
)
_ARTICLE = re.compile(r"\b([Aa])n? $")
_AN = re.compile(r"(?i:(?!one\b|once\b|uni|us[aeu]|ut[ei]|eu)[aeiou]|hour|hones|honour|heir)")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


#: What ends an alternative that wants something after it (`reply to`), and what cannot be that something.
_WANTS = _words("to for about with of on at over by into from through")
_NO_OBJECT = _words(
    "in on at to of by for from with without within as like via through about if when whenever unless "
    "until before after while because since and or but only solely exclusively again once twice first "
    "then last later now too briefly politely honestly warmly calmly quickly directly immediately clearly "
    "kindly is are was were not never fast short yes no"
)
#: Before a word these make it a noun: `the mention`, `a change`.
_BEFORE_NOUNS = _words("a an the this no any each every his her their its your our my of")
#: After the first word of a sentence these make it the subject: `Changes to the order require ...`.
_AFTER_SUBJECTS = _words(
    "to in of on for from at are is was were must may can should will have need needs require cannot do does"
)
#: Verbs after which `if` and `when` begin a question: `Tell the viewer when it ships`.
_ASKING = _words(
    "tell tells telling ask asks asking inform informs informing know knows see sees check checks "
    "checking decide decides wonder wonders learn learns unsure determine whether explain explains verify "
    "remember remind reveal hint guess matter matters regardless"
)
#: Verbs after which they do so only where nothing stands between: `Note when it ended`.
_ASKED_AT_ONCE = _words(
    "out say says note notes record clear confirm state mention report recall show list specify on of"
)
_CLAUSE_MARKS = frozenset([",", ";", ":", ".", "(", ")", "-", "–", "—"])
#: Chinese characters that make a compound noun of the word before them: 说明书, 显示器.
_SUFFIXES = frozenset("书器端键语题权率员师费框栏版页机性法式号袋盒表人度单")
_MEASURED = frozenset("一二三四五六七八九十两几每这那哪整半多数百千万")


class Site(NamedTuple):
    """A stretch of a sentence, and what may stand in its place."""

    start: int
    end: int
    alternatives: tuple[str, ...]


class _Entry(NamedTuple):
    guard: str
    alternatives: tuple[str, ...]


@functools.cache
def _table() -> PhraseTable[_Entry]:
    pairs: list[tuple[str, _Entry]] = []
    merged: dict[tuple[str, str], list[str]] = {}
    for name in _FILES:
        for line in _lines(name):
            for phrase, others in _parse(line):
                guard = phrase[0] if phrase[0] in "^<|" else ""
                known = merged.setdefault((guard, phrase.removeprefix(guard)), [])
                known += [other for other in others if other not in known]
    pairs += [(idiom, _Entry("", ())) for idiom in IDIOMS if not idiom.isascii()]
    for (guard, phrase), others in merged.items():
        pairs.append((phrase.replace("{}", _HOLE).replace("{q}", _QUOTED), _Entry(guard, tuple(others))))
    return PhraseTable(pairs)


def _parse(line: str) -> list[tuple[str, list[str]]]:
    """(phrase, alternatives) of a line; none for a comment or a blank one."""
    line = line.strip()
    if not line or line.startswith("#"):
        return []
    if line.startswith("! "):
        return [(line[2:], [])]
    if line.startswith("@"):
        verb, *others = (member.split() for member in line[1:].split(" > "))
        return [(form, [o.replace("_", " ") for o in its]) for form, *its in zip(verb, *others, strict=True)]
    if " > " in line:
        froms, tos = line.split(" > ")
        return [(phrase.strip(), [to.strip() for to in tos.split(" | ")]) for phrase in froms.split(" = ")]
    return _each([member.strip() for member in line.split(" = ")])


def _each(members: list[str]) -> list[tuple[str, list[str]]]:
    guard = members[0][0] if members[0][0] in "^<|" else ""
    bare = [member.removeprefix(guard) for member in members]
    return [(guard + member, [other for other in bare if other != member]) for member in bare]


@functools.cache
def _verb_forms() -> frozenset[str]:
    """Single words that the lexicon takes for verbs, and that may be nouns too."""
    forms: set[str] = set()
    for line in _lines("english.txt"):
        if line.startswith("@"):
            forms.update(line[1:].split(" > ")[0].split())
        elif line[:1] in ("^", "<") and " > " in line:
            phrase = line[1:].split(" > ")[0]
            forms.update([phrase] if phrase.isalpha() and phrase not in ("if", "when", "never") else [])
    return frozenset(forms)


def _lines(name: str) -> list[str]:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8").splitlines()


@functools.cache
def third_persons() -> frozenset[str]:
    """The verbs with which a description may say what a thing does, in lower case: `returns`."""
    words: set[str] = set()
    for line in _lines("english.txt"):
        if line.startswith("<"):
            phrase, _, others = line[1:].partition(" > ")
            words.update(member.split()[0] for member in (phrase, *others.split(" | ")))
    return frozenset(words - {"if", "when", "whenever", "you", "your", "used"})


def sites(sentence: str) -> list[Site]:
    """Where `sentence` may be reworded, left to right and apart from each other."""
    table = _table()
    found = list(TOKEN.finditer(sentence))
    tokens = [
        (_HOLE if match[0][1] == "r" else _QUOTED) if match[0][0] == OPEN else match[0].lower().replace("’", "'")
        for match in found
    ]
    out: list[Site] = []
    index = 0
    while index < len(tokens):
        fitting = [
            (size, each)
            for size, each in table.all_at(tokens, index)
            if _fits(each.guard, tokens, index, size) and (not each.alternatives or _means_it(tokens, index, size))
        ]
        if not fitting:
            index += 1
            continue
        size = fitting[0][0]
        start, end = found[index].start(), found[index + size - 1].end()
        inside = [match[0] for match in found[index : index + size]]
        if any(len(word) > 1 and word.isupper() and not word.endswith("FAQ") for word in inside):
            index += size  # in capitals for emphasis, or a name
            continue
        holes = [match[0] for match in found[index : index + size] if match[0][0] == OPEN]
        upper = sentence[start].isupper() and not sentence[start + 1 : start + 2].isupper()
        words = [
            _filled(a, holes, upper=upper)
            for length, each in fitting
            if length == size
            for a in each.alternatives
            if _has_its_object(a, tokens, index, size)
        ]
        if words:
            out.append(Site(start, end, tuple(dict.fromkeys(words))))
        index += size
    return out


def _means_it(tokens: list[str], index: int, size: int) -> bool:
    """Whether the phrase at `index` is used as the lexicon means it: as a verb, as a condition, as a word of its own."""
    token = tokens[index]
    before = tokens[index - 1] if index else ""
    after = tokens[index + size] if index + size < len(tokens) else ""
    if token in ("if", "when", "whenever"):
        return not _is_asked(tokens, index)
    if size == 1 and token in _verb_forms():
        return before not in _BEFORE_NOUNS and not (index == 0 and token.endswith("s") and after in _AFTER_SUBJECTS)
    if "\u3400" <= token <= "\u9fff":
        if token == "只" and size == 1 and (before in _MEASURED or before[:1].isdigit()):
            return False  # 三只猫
        if tokens[index : index + size] == ["所", "有"] and not "\u3400" <= after[:1] <= "\u9fff":
            return False  # 归顾客所有
        return after not in _SUFFIXES or tokens[index + size - 1][0] in (_HOLE, _QUOTED)
    return True


def _is_asked(tokens: list[str], index: int) -> bool:
    """Whether the condition at `index` is what is asked or told: in its clause a verb of asking comes before it."""
    if index and tokens[index - 1] in _ASKED_AT_ONCE:
        return True
    for token in reversed(tokens[:index]):
        if token in _CLAUSE_MARKS:
            return False
        if token in _ASKING:
            return True
    return False


def is_asked(words: str) -> bool:
    """Whether a condition that follows `words` in one clause is what is asked or told."""
    tokens = [match[0].lower() for match in TOKEN.finditer(words)]
    return _is_asked(tokens, len(tokens))


def begins_whole(sentence: str) -> bool:
    """Whether `sentence` begins with what is left whole: 别墅 is no 别."""
    tokens = [match[0].lower() for match in TOKEN.finditer(sentence)]
    found = _table().at(tokens, 0) if tokens else None
    return found is not None and not found[1].alternatives


def _has_its_object(alternative: str, tokens: list[str], index: int, size: int) -> bool:
    """Whether something follows that an alternative such as `reply to` can govern, if the phrase itself did without."""
    if alternative.rpartition(" ")[2] not in _WANTS or tokens[index + size - 1] in _WANTS:
        return True
    after = tokens[index + size] if index + size < len(tokens) else ""
    return (after[:1].isalnum() or after[:1] in (_HOLE, _QUOTED)) and after not in _NO_OBJECT


def _fits(guard: str, tokens: list[str], index: int, size: int) -> bool:
    if guard == "^":
        return index == 0 or tokens[index - 1] in _ORDER_AFTER
    if guard == "<":
        return index == 0 and tokens[size : size + 1] not in ([","], ["and"], ["or"]) and len(tokens) > 1
    if guard == "|":
        return index == 0 and index + size == len(tokens)
    return True


def _filled(alternative: str, holes: list[str], *, upper: bool) -> str:
    kept = iter(holes)
    alternative = _HOLES.sub(lambda _: next(kept), alternative)
    return capital(alternative) if upper else alternative


def capital(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def substituted(sentence: str, chosen: list[tuple[Site, str]]) -> str:
    """`sentence` with each site's choice in its place, and `a` or `an` right before it."""
    out = ""
    end = 0
    for site, words in chosen:
        out += sentence[end : site.start]
        if words[:1].isalpha():
            out = _ARTICLE.sub(lambda found, words=words: found[1] + ("n " if _AN.match(words) else " "), out)
        out += words
        end = site.end
    return out + sentence[end:]


def alternatives() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(phrase, what may stand for it) of the whole lexicon, guards left out."""
    for name in _FILES:
        for line in _lines(name):
            for phrase, others in _parse(line):
                yield phrase.lstrip("^<|"), tuple(others)
