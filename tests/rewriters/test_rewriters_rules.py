"""The offline rewriter on the texts that are shipped, and on texts it has never seen."""

from __future__ import annotations

import subprocess
import sys
import time

import msgspec
import pytest

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.operator import TextKind
from harnessctl.augment.rewriters.atoms import joined
from harnessctl.augment.rewriters.lexicon import alternatives
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.augment.texts import texts_of
from harnessctl.bundle import Bundle
from harnessctl.bundle.text import Ref, Text

ENOUGH = 8


def _plain(text: Text) -> str:
    return "".join(part if isinstance(part, str) else f"<{part.kind}:{part.name}>" for part in text)


def _words(text: Text) -> tuple[str, ...]:
    return tuple("".join(char if char.isalnum() else " " for char in _plain(text).lower()).split())


@pytest.mark.parametrize("name", ["live-stream", "mini"])
def test_every_shipped_text_has_enough_wordings_and_each_keeps_law_h(hosts: dict[str, Bundle], name: str) -> None:
    rewriter = RulesRewriter()
    few: list[str] = []
    faults: list[str] = []
    for place, text, kind in texts_of(hosts[name].state):
        found = rewriter.wordings(text, kind)
        if len({_words(wording) for wording in found} - {_words(text)}) < ENOUGH:
            few.append(f"{place}: {len(found)} wordings")
        faults += [f"{place}: {_plain(w)}: {fault}" for w in found for fault in wording_faults(text, w)]
        faults += [f"{place}: {_plain(w)}: not joined" for w in found if w != joined(w)]
    assert few == []
    assert faults == []


@pytest.mark.parametrize("name", ["live-stream", "mini"])
def test_wordings_differ_in_words_from_the_text_and_the_most_different_come_first(
    hosts: dict[str, Bundle], name: str
) -> None:
    rewriter = RulesRewriter()
    shares: list[float] = []
    first: list[float] = []
    last: list[float] = []
    for _, text, kind in texts_of(hosts[name].state):
        words = set(_words(text))
        its = [len(words & set(_words(w))) / len(words | set(_words(w))) for w in rewriter.wordings(text, kind)]
        shares += its
        first.append(its[0])
        last.append(its[-1])
    assert sum(shares) / len(shares) < 0.62
    assert sum(first) / len(first) + 0.1 < sum(last) / len(last)


def test_the_places_are_those_that_changes_know(hosts: dict[str, Bundle]) -> None:
    from harnessctl.bundle.variation import Changes, vary

    state = hosts["live-stream"].state
    marked: dict[str, Text] = {place: ["changed"] for place, _, _ in texts_of(state)}
    assert all(text == ["changed"] for _, text, _ in texts_of(vary(state, Changes(texts=marked))))
    places = set(marked)
    assert "skills/item-qa/rules/lookup" in places
    assert "tools/get_product/docs/properties/link_id" in places
    assert "prompt/boundaries/heading" in places
    assert "hooks/last-look/message" in places
    assert "skills/after-sales-care/rules/no-data" not in places  # verbatim


def test_the_retail_project_gets_useful_wordings(retail: Bundle) -> None:
    rewriter = RulesRewriter()
    texts = list(texts_of(retail.state))
    found = [rewriter.wordings(text, kind) for _, text, kind in texts]
    assert sum(len(its) >= 4 for its in found) / len(found) > 0.95
    assert all(not wording_faults(text, w) for (_, text, _), its in zip(texts, found, strict=True) for w in its)


UNKNOWN: list[tuple[Text, TextKind]] = [
    (["You must never share the password of a user."], "rule"),
    (["If the user asks for a refund, call ", Ref("tool", "refund"), " once; otherwise explain why not."], "rule"),
    (["# Deploying\n\nUse this skill when a build is green.\n\n```sh\nmake deploy  # never on Friday\n```\n\n1. Tag it.\n2. Wait 5 minutes."], "lead"),
    (["| a | b |\n|---|---|\n| not | only |"], "lead"),
    (["回答观众的问题，最多", Ref("limit", "n"), "个字，不要猜测。"], "rule"),
    (["Say \"I'm sorry\" or `sorry`, see https://example.org/a_b?c=1 and mail a.b@c.org."], "rule"),
    ([Ref("tool", "a"), Ref("tool", "b")], "description"),
    (["..."], "description"),
    ([""], "description"),
    ([], "description"),
    (["12345"], "heading"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), UNKNOWN)
def test_unknown_texts_keep_law_h_and_what_is_not_prose(text: Text, kind: TextKind) -> None:
    found = RulesRewriter().wordings(text, kind)
    assert all(not wording_faults(text, wording) for wording in found)
    assert all(wording != text for wording in found)
    if "```sh" in _plain(text):
        assert found
        assert all("```sh\nmake deploy  # never on Friday\n```" in _plain(wording) for wording in found)


def test_a_text_without_words_has_no_wordings() -> None:
    assert list(RulesRewriter().wordings([Ref("tool", "a")], "rule")) == []
    assert list(RulesRewriter().wordings(["| a | b |"], "lead")) == []


def test_the_same_text_has_the_same_wordings_in_any_process(hosts: dict[str, Bundle]) -> None:
    texts = [(text, kind) for _, text, kind in texts_of(hosts["mini"].state)]
    rewriter = RulesRewriter()
    here = msgspec.json.encode([list(rewriter.wordings(text, kind)) for text, kind in texts])
    program = (
        "import sys, msgspec\n"
        "from harnessctl.augment.rewriters.rules import RulesRewriter\n"
        "from harnessctl.bundle.text import Text\n"
        "texts = msgspec.json.decode(sys.stdin.buffer.read(), type=list[tuple[Text, str]])\n"
        "rewriter = RulesRewriter()\n"
        "found = [list(rewriter.wordings(text, kind)) for text, kind in reversed(texts)]\n"
        "sys.stdout.buffer.write(msgspec.json.encode(found[::-1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=msgspec.json.encode(texts), capture_output=True, check=True,
        env={"PYTHONHASHSEED": "12345"},
    )  # fmt: skip
    assert done.stdout == here


def test_wordings_survive_json(hosts: dict[str, Bundle]) -> None:
    rewriter = RulesRewriter()
    for _, text, kind in texts_of(hosts["mini"].state):
        for wording in rewriter.wordings(text, kind):
            assert msgspec.json.decode(msgspec.json.encode(wording), type=Text) == wording


def test_each_phrase_of_the_lexicon_keeps_law_h() -> None:
    def text(phrase: str) -> Text:
        parts = phrase.replace("{q}", '"q"').split("{}")
        refs = [Ref("tool", f"t{number}") for number in range(len(parts) - 1)]
        return joined([part for pair in zip(parts, [*refs, ""], strict=True) for part in pair])

    def scoped(fault: str) -> bool:
        return fault.startswith("length") or "governs" in fault  # what a phrase governs is known in its sentence only

    faults = [
        f"{phrase} > {other}: {fault}"
        for phrase, others in alternatives()
        for other in others
        for fault in wording_faults(text(phrase), text(other))
        if not scoped(fault)
    ]
    assert faults == []


def test_wordings_are_made_in_little_time_and_kept(hosts: dict[str, Bundle]) -> None:
    texts = [(text, kind) for _, text, kind in texts_of(hosts["live-stream"].state)]
    rewriter = RulesRewriter()
    started = time.process_time()
    for text, kind in texts:
        rewriter.wordings(text, kind)
    cold = time.process_time() - started
    started = time.process_time()
    for text, kind in texts:
        rewriter.wordings(text, kind)
    assert cold < 5
    assert time.process_time() - started < cold / 50


def test_memory_is_bounded_by_the_texts_that_are_kept() -> None:
    from harnessctl.augment.rewriters import rules

    rewriter = RulesRewriter()
    for number in range(rules._TEXTS_KEPT + 50):
        rewriter.wordings([f"{number}"], "rule")
    assert len(rewriter._kept) == rules._TEXTS_KEPT
