"""FAQ search: Chinese words of one and two characters, English forms, hostile text, filters, ranking."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world_project import FAQ, MANIFEST, shop

from harnessctl.errors import FaultsError, ToolError, UsageError
from harnessctl.simulate.world import open_world


@pytest.fixture
def small(project):
    with open_world(shop(project)) as world:
        yield world


@pytest.fixture(scope="module")
def live(repository):
    with open_world(repository / "manifests/worlds/live-room.yaml") as world:
        yield world


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("价格", "价格和店铺一样吗？"),
        ("包邮", "包邮吗？"),
        ("包邮吗", "包邮吗？"),
        ("退货", "怎么退货？"),
        ("运费谁出", "退货运费谁出？"),
        ("优惠券怎么用啊", "优惠券怎么用？"),
        ("发货要多久，什么时候发货", "什么时候发货？"),
        ("龙井怎么泡", "龙井怎么泡好喝？"),
        ("正品吗", "是正品吗？"),
        ("快递单号查不到", "快递单号查不到怎么办？"),
        ("真丝枕套多大", "真丝枕套多大尺寸？"),
        ("ＰＡＹＭＥＮＴ　ｍｅｔｈｏｄｓ", "Which payment methods do you take?"),
        ("How much is shipping", "How much is shipping?"),
        ("do you deliver to tibet", "Do you deliver to Xinjiang or Tibet?"),
        ("SHIPPING ABROAD??", "Do you ship abroad?"),
        ("my coupon isnt working", "My coupon does not work"),
        ("can I get invoices", "Can I get an invoice?"),
        ("is the wok ok for induction hobs", "Does the non-stick wok work on an induction hob?"),
        ("talk to a person pls", "Can I talk to a person?"),
        ("does the oat milk foam", "Does the oat milk foam?"),
    ],
)
def test_the_answer_that_fits_comes_first(live, query, question):
    assert live.search_faq(query, where={}, top_k=3)[0]["question"] == question


def test_a_single_character_is_found(live):
    found = live.search_faq("茶", where={}, top_k=5)
    assert found
    assert all("茶" in row["question"] + row["answer"] for row in found)


def test_a_word_is_not_found_inside_another(live):
    assert all("table" not in row["question"] for row in live.search_faq("table", where={}, top_k=5))


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "？？！！",
        "the of and is",
        '"',
        '" OR 1=1 --',
        "NEAR(a b, 2) AND NOT *",
        "question: answer ^x",
        "'; DROP TABLE faq; --",
        "_faq_trigram MATCH",
        "\ud800",
        "%_%",
        "\u202e😂" * 50,
        "发货" * 20_000,
        " ".join(f"w{n}" for n in range(5_000)),
    ],
)
def test_hostile_text_is_data(live, query):
    assert isinstance(live.search_faq(query, where={}, top_k=3), list)
    assert live.rows["faq"] == live.connection().execute("SELECT count(*) FROM faq").fetchone()[0]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_scores_in_order(live, query):
    scores = [row["score"] for row in live.search_faq(query, where={}, top_k=5)]
    assert scores == sorted(scores, reverse=True)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_every_question_finds_itself(live, data):
    rows = live.connection().execute("SELECT question FROM faq").fetchall()
    question = data.draw(st.sampled_from([row[0] for row in rows]))
    assert question in [row["question"] for row in live.search_faq(question, where={}, top_k=3)]


def test_filters_narrow_and_general_rows_hold_for_all(small):
    def search(**where):
        return [row["id"] for row in small.search_faq("shipping sunscreen sticky", where=where, top_k=5)]

    assert sorted(search()) == [1, 2]
    assert sorted(search(item=1)) == [1, 2]
    assert search(item=9) == [1]
    assert search(lang="zh") == []
    assert sorted(search(lang=None)) == [1, 2]
    assert sorted(search(lang=["en", "zh"])) == [1, 2]


def test_an_unknown_filter_is_refused(small):
    with pytest.raises(ToolError, match="cannot be narrowed by `price`"):
        small.search_faq("shipping", where={"price": 1}, top_k=1)


def test_empty_cells_are_left_out(small):
    assert small.search_faq("包邮", where={}, top_k=1) == [
        {"id": 3, "lang": "zh", "question": "包邮吗？", "answer": "满59元包邮。", "score": pytest.approx(2, abs=2)}
    ]


@pytest.mark.parametrize("top_k", [0, 1, 2])
def test_no_more_than_asked_for(small, top_k):
    assert len(small.search_faq("shipping sunscreen", where={}, top_k=top_k)) == top_k


def test_a_faq_must_be_possible(project):
    for change, told in [
        (("table: faq,", "table: fag,"), "the FAQ names a table that there is not; got fag"),
        (("filter: [lang, item]", "filter: [language]"), "the table faq has no column `language`"),
        (("{file: faq.csv, key: [id]}", "{file: faq.csv, key: [id], mutable: true}"), "cannot be mutable"),
        (("{table: faq,", "{table: faq, answer: reply,"), "the table faq has no column `reply`"),
    ]:
        with pytest.raises(FaultsError) as caught:
            open_world(shop(project, manifest=MANIFEST.replace(*change)))
        assert told in caught.value.render()


def test_a_world_without_a_faq(project):
    lines = [line for line in MANIFEST.splitlines() if "faq" not in line]
    with (
        open_world(shop(project, manifest="\n".join(lines) + "\n")) as world,
        pytest.raises(UsageError, match="no FAQ"),
    ):
        world.search_faq("x", where={}, top_k=1)


def test_an_integer_key_does_not_shift_the_rows(project):
    with open_world(shop(project, faq=FAQ.replace("\n1,", "\n901,").replace("\n3,", "\n7,"))) as world:
        assert world.search_faq("包邮", where={}, top_k=1)[0]["id"] == 7
