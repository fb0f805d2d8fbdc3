"""What a fair person would say of a reply, beside what the scores say: right answers in other words, wrong ones that
come near."""

from __future__ import annotations

from typing import Any

import pytest
from score_cases import WRITES, call, gold, load, scenario, trajectory

from harnessctl.records.scenario import Fact, Gold, GoldCall
from harnessctl.score.rules import RuleScorer

PRICE = Fact(any=["89 yuan", "89元", "89块", "¥89"], source="get_product")
LINK = Fact(any=["link 4", "number 4", "4号"], source="get_product")
MONTHS = Fact(any=["12 months", "12个月"], source="get_product")
DAYS = Fact(any=["1 to 2", "1-2", "1到2"], source="get_product")
OFF = Fact(any=["20%"], source="get_product")
STOCK = Fact(any=["in stock", "available", "有货", "有现货"], source="get_product")
SENT = Fact(any=["delivered", "已送达", "签收"], source="get_product")

RIGHT = [
    (PRICE, "zh", ["4号89元", "4号链接八十九元", "亲，4号链接¥89.00哦", "89块钱", "四号链接八十九块", "链接4，89元", "人民币89", "4号现在89，原价129"]),
    (PRICE, "en", ["It's ¥89.", "89 RMB, dear!", "RMB89 for this one", "CNY 89", "89.00 Yuan, link four.", "eighty-nine yuan for number four"]),
    (PRICE, "en", ["It is not 129 yuan any more, it is 89 yuan."]),
    (LINK, "en", ["No. 4 is cheaper.", "That is #4.", "Link four it is", "number four", "number 4"]),
    (LINK, "zh", ["是4号", "四号链接", "链接4", "第4个"]),
    (MONTHS, "en", ["A 12-month warranty.", "Twelve months.", "12 month warranty"]),
    (MONTHS, "zh", ["十二个月质保", "质保 12 个月"]),
    (DAYS, "en", ["One to two days.", "1–2 days", "1 - 2 days", "1~2 days"]),
    (OFF, "en", ["20 percent off", "20 % off", "a share of 0.2"]),
    (OFF, "zh", ["便宜百分之二十"]),
    (STOCK, "en", ["Yes, it's in stock!", "No worries, in stock.", "Why not, it is available"]),
    (SENT, "zh", ["您的订单已送达", "昨天签收了"]),
]  # fmt: skip
WRONG = [
    (PRICE, "zh", ["4号129元", "4号九十八元", "4号89美元", "不是89元", "4号89天", "4号8.9元", "4号八百九十元", "编号89号"]),
    (PRICE, "en", ["It's 98 yuan.", "89 dollars", "It's not 89 yuan.", "It is 129 yuan; link 89 is another.", "89% of 129 yuan", "89 days"]),
    (LINK, "en", ["Link 3.", "Number fourteen", "4 yuan", "It takes 4 days, link 40", "#14", "not link 4"]),
    (LINK, "zh", ["14号", "4元", "不是4号"]),
    (MONTHS, "en", ["12 days", "12 years", "24 months", "twenty months"]),
    (MONTHS, "zh", ["12天", "十年", "二十个月"]),
    (DAYS, "en", ["10 to 2 days", "1 to 20 days", "3 to 4 days"]),
    (OFF, "en", ["20 yuan off", "2% off", "20 days"]),
    (STOCK, "en", ["It is not in stock any more.", "Not currently available", "there is nothing available", "It isn't in stock", "unavailable"]),
    (STOCK, "zh", ["没有货了", "没有现货"]),
    (SENT, "zh", ["还没已送达", "未签收"]),
    (SENT, "en", ["It is not yet delivered", "undelivered"]),
]  # fmt: skip


def cases(table: list[tuple[Fact, str, list[str]]]) -> list[Any]:
    return [pytest.param(fact, language, text, id=text) for fact, language, texts in table for text in texts]


def score(reply: str, wanted: Gold, *tools: Any, language: str = "en", **fields: Any) -> Any:
    given = trajectory(reply, *tools, request={"id": "r1", "text": "link 4?"}, **fields)
    return RuleScorer(WRITES).score(given, scenario(wanted, text="link 4?", language=language))


def asked_about(fact: Fact) -> tuple[Gold, list[Any]]:
    """Gold that wants a fact of link 4, and the calls of a right answer."""
    numbers = {"link_id": 4, "price": 89, "list_price": 129, "days": [1, 2, 7], "share": 20, "months": 12, "other": 3}
    wanted = gold(
        calls=[GoldCall(tool="get_product", arguments={"link_id": 4})],
        facts=[fact],
        replies=[f"Link 4: {fact.any[0]}."],
    )
    return wanted, [load("item-qa"), call("get_product", numbers, link_id=4)]


@pytest.mark.parametrize(("fact", "language", "reply"), cases(RIGHT))
def test_right_in_other_words(fact: Fact, language: str, reply: str) -> None:
    wanted, tools = asked_about(fact)
    found = score(reply, wanted, *tools, language=language)
    assert (found.accuracy, found.effectiveness, found.reasons) == (1, 1, {})


@pytest.mark.parametrize(("fact", "language", "reply"), cases(WRONG))
def test_wrong_though_near(fact: Fact, language: str, reply: str) -> None:
    wanted, tools = asked_about(fact)
    found = score(reply, wanted, *tools, language=language)
    assert found.average < 1
    assert found.effectiveness == 0


def test_the_price_of_another_link() -> None:
    wanted, tools = asked_about(PRICE)
    for reply in ("Link 3 is 89 yuan.", "number three: 89 yuan"):
        found = score(reply, wanted, *tools)
        assert found.accuracy == 0
        assert "speaks of number 3, which is not what was asked about" in found.reasons["accuracy"]
    assert score("Link 4 is 89 yuan, and link 3 is another.", wanted, *tools).accuracy == 1
    assert score("It is 89 yuan.", wanted, *tools).accuracy == 1


def test_a_whole_share_has_no_source_in_a_one() -> None:
    wanted, tools = asked_about(PRICE)
    found = score("Link 4 is 89 yuan and 100% cotton.", wanted, *tools)
    assert found.reasons["accuracy"] == ["no source has the number 100%"]


def test_what_is_denied_is_not_claimed() -> None:
    wanted, tools = asked_about(STOCK)
    wanted.claims = ["sold out", "卖完"]
    assert score("No, it is not sold out, it is available.", wanted, *tools).accuracy == 1
    assert score("It is sold out.", wanted, *tools).accuracy == 0
    assert score("没有卖完，有货", wanted, *tools, language="zh").accuracy == 1
