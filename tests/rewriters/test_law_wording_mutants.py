"""Law h on the shipped texts: whatever word of weight is changed anywhere, the change is caught."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.texts import texts_of
from harnessctl.bundle import Bundle
from harnessctl.bundle.text import Ref, Text

#: A word of weight and what a careless paraphrase makes of it.
SLIPS = [
    (r"\b(?:do|does|did|is|are|was) not\b", "will"),
    (r"\bnot\b", ""),
    (r"\bcannot\b", "can"),
    (r"\bno\b(?! matter)", "the"),
    (r"\bnothing\b", "something"),
    (r"\bnobody\b", "somebody"),
    (r"\bnone\b", "some"),
    (r"\bnever\b", "always"),
    (r"\bnever\b", "not"),
    (r"\bwithout\b", "with"),
    (r"\bonly\b", ""),
    (r"\balone\b", "too"),
    (r"\bmust\b", "may"),
    (r"\bmay\b", "must"),
    (r"\bcan\b(?!not)", "should"),
    (r"\bneeds?\b", "likes"),
    (r"\bat most\b", "at least"),
    (r"\bup to\b", "over"),
    (r"\bbefore\b", "after"),
    (r"\bafter\b(?!-)", "before"),
    (r"\bfirst\b", "last"),
    (r"\bthen\b", ""),
    (r"\bif\b", "unless"),
    (r"\bwhen\b", "unless"),
    (r"\balways\b", "often"),
    (r"\bevery\b", "some"),
    (r"(?<!at )\ball\b", "some"),
    (r"\bany\b", "the"),
    (r"\bonce\b", "twice"),
    (r"(?<!this )(?<!that )(?<!which )(?<!another )(?<!other )\bone\b(?! another)", "two"),
    (r"\btwo\b", "three"),
    (r"\bsecond\b", "third"),
    (r"\d+", "7919"),
    (r"\binstead\b", "too"),
    (r"\botherwise\b", "also"),
]


def _mutants(text: Text) -> Iterator[tuple[str, Text]]:
    for index, part in enumerate(text):
        if isinstance(part, Ref):
            yield f"without {part.name}", [*text[:index], "it", *text[index + 1 :]]
            yield f"{part.name} doubled", [*text[:index], part, " and ", *text[index:]]
            yield f"other than {part.name}", [*text[:index], Ref(part.kind, f"{part.name}x"), *text[index + 1 :]]
            continue
        for pattern, slip in SLIPS:
            for found in re.finditer(pattern, part, re.IGNORECASE):
                mutated = part[: found.start()] + slip + part[found.end() :]
                yield f"{found[0]!r} as {slip!r}", [*text[:index], mutated, *text[index + 1 :]]
        for found in re.finditer(r'"[^"]+"|`[^`]+`', part):
            mutated = part[: found.start() + 1] + "other" + part[found.end() - 1 :]
            yield f"{found[0]} altered", [*text[:index], mutated, *text[index + 1 :]]
            yield f"{found[0]} bare", [*text[:index], part[: found.start()] + found[0][1:-1] + part[found.end() :]]


@pytest.mark.parametrize("name", ["live-stream", "mini"])
def test_every_slip_in_a_shipped_text_is_caught(hosts: dict[str, Bundle], name: str) -> None:
    count = 0
    missed: list[str] = []
    for place, text, _ in texts_of(hosts[name].state):
        for what, mutant in _mutants(text):
            count += 1
            if not wording_faults(text, mutant):
                missed.append(f"{place}: {what}")
    assert missed == []
    assert count > (400 if name == "live-stream" else 30)


def test_every_slip_in_the_retail_project_is_caught(retail: Bundle) -> None:
    slips = [(place, text, *mutant) for place, text, _ in texts_of(retail.state) for mutant in _mutants(text)]
    assert [f"{place}: {what}" for place, text, what, mutant in slips if not wording_faults(text, mutant)] == []
    assert len(slips) > 40
