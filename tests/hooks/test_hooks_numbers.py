from __future__ import annotations

from decimal import Decimal

import pytest
from hook_scenes import SKILLS, call, decide, scene
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.numerals import canonical, chinese_value, known_numbers, numbers_in
from harnessctl.runtime.scene import SessionState


def said(text: str) -> list[tuple[str, ...]]:
    """The first way to understand each number that a statement says."""
    return [number.ways[0] for number in numbers_in(text)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("no number", []),
        ("89元", ["89"]),
        ("89.90", ["89.9"]),
        ("1299.00", ["1299"]),
        ("1,299", ["1299"]),
        ("1,299,000.50", ["1299000.5"]),
        ("１，２９９元", ["1299"]),
        ("８９．９元", ["89.9"]),
        ("007", ["7"]),
        ("-5", ["5"]),
        ("costs 89.", ["89"]),
        ("3-5 days", ["3", "5"]),
        ("100~200", ["100", "200"]),
        ("2026-10-19", ["2026", "10", "19"]),
        ("2026.10.19", ["2026", "10", "19"]),
        ("10月9日20:05", ["10", "9", "20", "5"]),
        ("1.2万", ["12000"]),
        ("3百", ["300"]),
        ("5千万", ["50000000"]),
        ("9块9", ["9.9"]),
        ("9块9毛", ["9.9"]),
        ("20%", ["20"]),
        ("iPhone 15 Pro", ["15"]),
        ("SPF50", ["50"]),
        ("sizes 38, 39, 40", ["38", "39", "40"]),
        ("1,2,3", ["1", "2", "3"]),
        ("٣ units", ["3"]),
        ("一百二十八", ["128"]),
        ("一百零五元", ["105"]),
        ("一千零一", ["1001"]),
        ("两百", ["200"]),
        ("三千五", ["3500"]),
        ("一万二", ["12000"]),
        ("一万零五十", ["10050"]),
        ("十二", ["12"]),
        ("二十", ["20"]),
        ("一亿三千万", ["130000000"]),
        ("二〇二六年", ["2026"]),
        ("百分之二十", ["20"]),
        ("八折", ["8"]),
        ("八五折", ["85"]),
        ("五元", ["5"]),
        ("五块钱", ["5"]),
        ("五块", ["5"]),
        ("九块九包邮", ["9.9"]),
        ("八十九块九一件", ["89.9"]),
    ],
)
def test_numbers_that_are_read(text, numbers):
    assert said(text) == [(number,) for number in numbers]


@pytest.mark.parametrize(
    "text",
    [
        "我看一下",
        "一起买",
        "万一",
        "千万别错过",
        "十分好用",
        "三三两两",
        "一五一十",
        "双十一活动",
        "两块香皂",
        "跟它一块买",
        "七上八下",
        "三四个",
    ],
)
def test_words_that_are_no_numbers(text):
    assert said(text) == []


@pytest.mark.parametrize(
    ("reply", "source", "grounded"),
    [
        ("89元", {"price": 89}, True),
        ("89元", {"price": 89.0}, True),
        ("89元", {"price": "89.00"}, True),
        ("89元", {"price": "¥89.00起"}, True),
        ("八十九元", {"price": 89}, True),
        ("89元", {"price": "八十九"}, True),
        ("88元", {"price": 89}, False),
        ("1,299", {"price": 1299}, True),
        ("1299", {"text": "1,299"}, True),
        ("100,200", [100, 200], True),
        ("100,200", [100, 201], False),
        ("20%", {"discount": 0.2}, True),
        ("20%", {"discount": 20}, True),
        ("百分之二十", {"discount": 0.2}, True),
        ("8折", {"discount": 0.8}, True),
        ("8折", {"text": "打八折"}, True),
        ("85折", {"discount": 0.85}, True),
        ("八五折", {"text": "85%"}, True),
        ("1.2万", {"sold": 12000}, True),
        ("12000", {"text": "已售1.2万件"}, True),
        ("4k", {"width": "4K"}, True),
        ("9块9", {"price": 9.9}, True),
        ("九块九", {"price": "9.90"}, True),
        ("128GB", {"128GB": {"price": 1}}, True),
        ("3 days", {"delivery": "3-5 days"}, True),
        ("10月19日", {"until": "2026-10-19"}, True),
        ("10.19", {"until": "2026-10-19"}, False),
        ("178", {"price": 89, "quantity": 2}, False),
        ("1", {"in_stock": True}, False),
        ("90", {"price": 89.9}, False),
        ("0.30000000000000004", {"sum": 0.1 + 0.2}, True),
        ("10000000000000000000000", {"n": 10**22}, True),
        ("5", {"n": float("nan"), "m": float("inf"), "k": None}, False),
        ("2个", {"text": "买两个"}, True),
    ],
)
def test_grounding(reply, source, grounded):
    at = scene(reply=reply, context={}, calls=[call("get_product", result=source)])
    assert decide({"grounded_numbers": {}}, at=at).decision == ("pass" if grounded else "block")


@pytest.mark.parametrize(
    ("fields", "spec", "grounded"),
    [
        ({"context": {"room": {"price": 77}}}, {}, True),
        ({"context": {"room": {"price": 77}}}, {"sources": ["results"]}, False),
        ({"message": "is it 77?"}, {}, True),
        ({"message": "is it 77?"}, {"sources": ["context", "results"]}, False),
        ({"calls": [call("get_product", status="error", result="77")]}, {}, False),
        ({}, {"ignore_below": 78}, True),
        ({}, {"ignore_below": 77}, False),
        ({}, {"sources": ["skills"]}, False),
    ],
)
def test_sources(fields, spec, grounded):
    at = scene(reply="77 yuan", **{"context": {}, **fields})
    assert decide({"grounded_numbers": spec}, at=at).decision == ("pass" if grounded else "block")


def test_results_that_earlier_turns_left_are_a_source():
    at = scene(reply="77 yuan", context={})
    at.session = SessionState(calls=[call("get_product", result=77)])
    assert decide({"grounded_numbers": {}}, at=at).decision == "pass"


def test_the_texts_of_loaded_skills_are_a_source_with_their_limits():
    check = {"grounded_numbers": {"sources": ["skills"]}}
    at = scene(reply="Free from 39, in 20 characters", skills=SKILLS)
    assert decide(check, at=at).decision == "pass"
    at = scene(reply="Free from 39, in 20 characters", skills=SKILLS, limits={"reply_max_chars": 30})
    assert decide(check, at=at).reason == "no source has the number 20"


def test_what_is_looked_at_is_not_its_own_source():
    check = {"grounded_numbers": {}}
    assert decide(check, "post_tool", scene("post_tool", result="77", context={})).decision == "block"
    assert decide(check, "input", scene("input", message="77", context={})).decision == "block"
    at = scene("post_tool", output="77", result="77", context={})
    assert decide({"grounded_numbers": {"target": "output"}}, "post_tool", at).decision == "pass"


def test_the_reason_names_the_numbers_as_they_were_written():
    at = scene(reply="只要1,099元，八五折，3 left, 3 left, 4, 5, 6, 7", context={}, message="")
    assert decide({"grounded_numbers": {}}, at=at).reason == "no source has the numbers 1,099, 3, 4, 5, 6"


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_long_runs_of_digits_are_compared_and_never_scaled(size):
    digits = "9" * size
    at = scene(reply=digits, context={}, calls=[call("get_product", result=digits)])
    assert decide({"grounded_numbers": {"ignore_below": 5}}, at=at).decision == "pass"
    assert decide({"grounded_numbers": {}}, at=scene(reply=digits + "%", context={})).decision == "block"


UNITS = "零一二三四五六七八九"


def in_chinese(value: int) -> str:
    """A value below 100,000,000 as it is written in Chinese."""
    if value >= 10_000:
        head, rest = divmod(value, 10_000)
        zero = "零" if 0 < rest < 1000 else ""
        return in_chinese(head) + "万" + (zero + in_chinese(rest) if rest else "")
    text, pending_zero = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, value = divmod(value, unit)
        if digit:
            text += ("零" if pending_zero and text else "") + UNITS[digit] + name
            pending_zero = False
        else:
            pending_zero = True
    return text or "零"


@given(st.integers(min_value=1, max_value=99_999_999))
@settings(max_examples=200, deadline=None)
def test_chinese_numerals_read_back(value):
    assert chinese_value(in_chinese(value)) == value


@given(st.text(alphabet="零〇一二两三四五六七八九十百千万亿", min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_any_run_of_numerals_is_a_value_or_none(run):
    value = chinese_value(run)
    assert value is None or value >= 0


@given(st.decimals(min_value=0, max_value=10**9, places=2, allow_nan=False))
@settings(max_examples=100, deadline=None)
def test_a_price_is_grounded_however_it_is_written(price):
    known = set(known_numbers(float(price)))
    for written in (f"{price}", f"{price:,}", f"¥{price}元", f"00{price}"):
        (number,) = numbers_in(written)
        assert any(known.issuperset(way) for way in number.ways), (written, number)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_a_text_is_always_grounded_in_itself(text):
    known = set(known_numbers(text))
    assert all(any(known.issuperset(way) for way in number.ways) for number in numbers_in(text))


def test_canonical():
    assert [canonical(n) for n in ("0", "000", "0.0", "00.50", "10", "1.010")] == ["0", "0", "0", "0.5", "10", "1.01"]


@pytest.mark.parametrize("value", [0, -7, 10**30, -(10**30), 2**64, 2**200])
def test_whole_numbers_of_any_size_are_known_by_their_digits(value: int) -> None:
    assert known_numbers({"a": [value]}) == [format(Decimal(abs(value)), "f")]
