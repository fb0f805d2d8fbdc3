"""Whatever the text, each wording passes a check that shares nothing with the law's own."""

from __future__ import annotations

import itertools
import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.bundle.text import Ref, Text

REWRITER = RulesRewriter()

refs = st.builds(
    Ref, st.sampled_from(["tool", "skill", "rule", "limit"]), st.sampled_from(["find_x", "item-qa", "a", "查询"])
)
orders = st.sampled_from(
    [
        "Call",
        "Never call",
        "Do not use",
        "Use",
        "You must call",
        "You may call",
        "Only use",
        "Always call",
        "Ask for",
        "Say",
    ]
)
objects = st.sampled_from(
    [
        "the order",
        "a price",
        "at most 3 links",
        "two items",
        "the item",
        "no more than 12 words",
        "every coupon",
        "30 yuan",
    ]
)
tails = st.sampled_from(
    [
        "before you answer", "after the first reply", "if the viewer asks for it", "unless it is sold out", "without a guess",
        "only when it was looked up", 'as "it is"', "once", "in one sentence", "rather than guessing", "when nothing fits",
    ]
)  # fmt: skip
joints = st.sampled_from(["; ", ". ", ", and "])


@st.composite
def rules(draw: st.DrawFn) -> Text:
    text: Text = []
    for number in range(draw(st.integers(1, 3))):
        text += [draw(joints)] if number else []
        text += [draw(orders), " "]
        text += [draw(refs)] if draw(st.booleans()) else [draw(objects)]
        text += [" ", draw(tails)]
    return [*text, "."]


NEGATIVE = re.compile(r"\b(?:not|no|nothing|none|nobody|cannot|refrain|avoid)\b|n't\b")
GROUPS = {
    "negative": NEGATIVE,
    "never": re.compile(r"\b(?:never|at no time|under no circumstances|in no case|on no account)\b"),
    "without": re.compile(r"\bwithout\b"),
    "only": re.compile(r"\b(?:only|solely|exclusively|alone)\b"),
    "must": re.compile(r"\b(?:must|ha(?:ve|s) to|needs?(?: to)?|require[sd]?)\b"),
    "may": re.compile(r"\b(?:may|can|cannot|might|could|able to|allowed to|permitted to|impossible)\b"),
    "always": re.compile(r"\b(?:always|at all times|every time)\b"),
    "condition": re.compile(r"\b(?:if|when|whenever|in case(?! of)|provided (?:that|there))\b"),
    "unless": re.compile(r"\bunless\b"),
    "before": re.compile(r"\b(?:before(?! any| all| every)|prior to|ahead of)\b"),
    "after": re.compile(r"\b(?:after|afterwards|thereafter)\b"),
    "number": re.compile(r"\d+|\b(?:one|two|three|once|twice|first|second)\b"),
}
BOUNDS = re.compile(r"\b(?:no (?:more|fewer|less) than|at (?:the )?(?:most|least)|up to|a maximum of|a minimum of)\b")


def _seen(text: Text) -> tuple[Counter[Ref], dict[str, int], list[str]]:
    said = " ".join(part if isinstance(part, str) else "\0" for part in text).lower()
    bounds = len(BOUNDS.findall(said))
    said = re.sub(r"\b(?:not at all|one another|each other)\b", "", BOUNDS.sub("", said))
    counts = {name: len(pattern.findall(said)) for name, pattern in GROUPS.items()}
    counts["negative"] -= len(re.findall(r"\b(?:at no time|under no circumstances|in no case|on no account)\b", said))
    counts["negative"] += said.count("impossible")
    counts["bounds"] = bounds
    quoted = re.findall(r'"[^"]*"', "".join(part if isinstance(part, str) else "\0" for part in text))
    return Counter(part for part in text if isinstance(part, Ref)), counts, sorted(quoted)


@given(rules(), st.sampled_from(["rule", "message", "description", "lead"]))
@settings(max_examples=150, deadline=None)
def test_wordings_of_rules_keep_what_a_plain_count_sees(text: Text, kind: str) -> None:
    found = REWRITER.wordings(text, kind)
    assert found
    for wording in found:
        assert _seen(wording) == _seen(text), (text, wording)


@given(st.lists(st.one_of(st.text(max_size=40), refs), max_size=6), st.sampled_from(["rule", "description", "heading"]))
@settings(max_examples=200, deadline=None)
def test_any_text_at_all_has_wordings_that_keep_law_h_or_none(text: Text, kind: str) -> None:
    before = list(text)
    for wording in REWRITER.wordings(text, kind):
        assert wording_faults(text, wording) == []
        assert Counter(p for p in wording if isinstance(p, Ref)) == Counter(p for p in text if isinstance(p, Ref))
        assert not any(isinstance(a, str) and isinstance(b, str) for a, b in itertools.pairwise(wording))
    assert text == before


@given(rules())
@settings(max_examples=60, deadline=None)
def test_the_law_is_reflexive_and_symmetric_in_what_it_counts(text: Text) -> None:
    assert wording_faults(text, list(text)) == []
    for wording in REWRITER.wordings(text, "rule")[:3]:
        assert [fault for fault in wording_faults(wording, text) if not fault.startswith(("length", "a name"))] == []


starts_zh = st.sampled_from(
    [
        "必须先调用",
        "不要使用",
        "请勿调用",
        "只能用",
        "可以使用",
        "如果没有结果，就调用",
        "说价格之前，先调用",
        "绝不编造",
        "最多给出两个",
    ]
)
ends_zh = st.sampled_from(
    [
        "回答观众的问题",
        "查询商品的价格",
        "，然后回复",
        "，不得猜测",
        "，至少说明一次",
        "里的所有优惠券",
        "，除非观众要求",
    ]
)
ZH = {
    "不": re.compile("[不勿别没无]|避免|切莫"),
    "必": re.compile("必须|务必"),
    "可": re.compile("可以|能够|[只仅]能"),
    "只": re.compile("只|仅"),
    "如": re.compile("如果|若|假如|倘若|要是|时(?=，)|的时候"),
    "先": re.compile("先"),
    "前": re.compile("之前|以前"),
    "后": re.compile("然后|接着|随后"),
    "数": re.compile("[一两二三]"),
    "多": re.compile("最多|至多"),
    "少": re.compile("至少|最少|起码"),
    "所": re.compile("所有|全部"),
    "除": re.compile("除非"),
}


def _seen_zh(text: Text) -> tuple[Counter[Ref], dict[str, int]]:
    said = "".join(part if isinstance(part, str) else "\0" for part in text).replace("首先", "先")
    return Counter(part for part in text if isinstance(part, Ref)), {k: len(p.findall(said)) for k, p in ZH.items()}


@given(st.lists(st.tuples(starts_zh, refs, ends_zh), min_size=1, max_size=3), st.sampled_from(["rule", "lead"]))
@settings(max_examples=100, deadline=None)
def test_chinese_wordings_keep_what_a_plain_count_sees(parts: list[tuple[str, Ref, str]], kind: str) -> None:
    text: Text = [piece for start, ref, end in parts for piece in (start, ref, end + "。")]
    found = REWRITER.wordings(text, kind)
    assert found
    for wording in found:
        assert _seen_zh(wording) == _seen_zh(text), (text, wording)
