"""The shipped tables: sizes, references between them, prices that agree, words that may be said."""

from __future__ import annotations

import json
import re
from collections import Counter

import msgspec
import pytest
from host_agent import REPOSITORY, bundle, world

from harnessctl.records.comment import CommentInput

ROOM = REPOSITORY / "manifests/worlds/live-room"


def rows(sql: str) -> list[dict]:
    return [dict(row) for row in world().connection().execute(sql)]


def test_sizes():
    count = world().rows
    assert count["products"] >= 120
    assert count["faq"] >= 200
    assert count["rooms"] >= 6
    assert len({row["category"] for row in rows("SELECT category FROM products")}) >= 20
    (chinese,) = rows("SELECT room_id FROM rooms WHERE language = 'zh'")
    links = rows(
        f"SELECT p.language FROM room_links JOIN products AS p USING (product_id) WHERE room_id = '{chinese['room_id']}'"
    )
    assert len(links) >= 20
    assert {row["language"] for row in links} == {"zh"}
    assert rows("SELECT count(*) AS n FROM faq WHERE language = 'zh'")[0]["n"] >= 80


@pytest.mark.parametrize(
    ("child", "column", "parent"),
    [
        ("variants", "product_id", "products"),
        ("room_links", "product_id", "products"),
        ("room_links", "room_id", "rooms"),
        ("faq", "product_id", "products"),
        ("faq", "room_id", "rooms"),
        ("coupons", "room_id", "rooms"),
        ("campaigns", "room_id", "rooms"),
        ("bundles", "room_id", "rooms"),
        ("live_state", "room_id", "rooms"),
        ("products", "category", "policies"),
        ("orders", "product_id", "products"),
        ("orders", "viewer_id", "viewers"),
        ("orders", "sku", "variants"),
        ("tickets", "order_id", "orders"),
        ("tickets", "viewer_id", "viewers"),
        ("coupon_grants", "coupon_id", "coupons"),
        ("coupon_grants", "viewer_id", "viewers"),
        ("carts", "viewer_id", "viewers"),
    ],
)
def test_references_lead_somewhere(child, column, parent):
    assert not rows(
        f"SELECT c.* FROM {child} AS c LEFT JOIN {parent} AS p USING ({column}) WHERE c.{column} IS NOT NULL AND p.rowid IS NULL"
    )


@pytest.mark.parametrize(("table", "column"), [("explain_queue", "link_id"), ("carts", "link_id"), ("screen_cards", "link_id"),
                                                ("live_state", "current_link_id")])  # fmt: skip
def test_links_are_links_of_their_room(table, column):
    assert not rows(f"SELECT t.* FROM {table} AS t LEFT JOIN room_links AS l ON l.room_id = t.room_id AND l.link_id = t.{column} "
         "WHERE l.rowid IS NULL")  # fmt: skip


def test_links_are_numbered_without_gaps():
    assert not rows(
        "SELECT room_id FROM room_links GROUP BY room_id HAVING max(link_id) <> count(*) OR min(link_id) <> 1"
    )


def test_a_product_has_the_stock_and_the_lowest_price_of_its_options():
    assert not rows("SELECT p.name, p.stock, sum(v.stock), p.price, min(v.price) FROM products AS p JOIN variants AS v USING (product_id) "
         "GROUP BY p.product_id HAVING p.stock <> sum(v.stock) OR p.price <> min(v.price)")  # fmt: skip


def test_prices_are_sane_and_names_are_given_twice():
    assert not rows("SELECT name FROM products WHERE price <= 0 OR list_price <= price OR stock < 0")
    assert not rows(
        "SELECT name FROM products WHERE name_zh IS NULL OR caution IS NULL OR freight <> (CASE WHEN price >= 59 THEN 0 ELSE 8 END)"
    )
    assert {row["n"] for row in rows("SELECT count(DISTINCT name) + count(DISTINCT name_zh) AS n FROM products")} == {
        2 * world().rows["products"]
    }


def test_scripts_say_the_price_of_the_link():
    for row in rows("SELECT script, price, list_price FROM room_links JOIN products USING (product_id)"):
        assert re.search(rf"\b{row['price']}(?!\d)|{row['price']}元", row["script"]), row


def test_bundles_cost_less_than_their_parts():
    for row in rows("SELECT * FROM bundles"):
        prices = [
            rows(
                f"SELECT price FROM room_links JOIN products USING (product_id) WHERE room_id = '{row['room_id']}' AND link_id = {n}"
            )
            for n in json.loads(row["link_ids"])
        ]
        assert row["full_price"] == sum(found[0]["price"] for found in prices)
        assert row["bundle_price"] < row["full_price"]


def test_orders_add_up():
    assert not rows("SELECT order_id FROM orders WHERE paid <> unit_price * quantity - discount + freight")
    assert not rows(
        "SELECT order_id FROM orders WHERE (status IN ('delivered', 'returned')) <> (delivered_on IS NOT NULL)"
    )
    assert not rows(
        "SELECT o.order_id FROM orders AS o JOIN variants AS v USING (sku) WHERE o.product_id <> v.product_id OR o.unit_price <> v.price"
    )
    assert not rows(
        "SELECT order_id FROM orders JOIN products USING (product_id) WHERE sku IS NULL AND unit_price <> price"
    )


def test_one_link_is_on_air_in_each_room():
    assert not rows("SELECT s.room_id FROM live_state AS s LEFT JOIN explain_queue AS q ON q.room_id = s.room_id "
         "AND q.link_id = s.current_link_id AND q.status = 'now' WHERE q.rowid IS NULL")  # fmt: skip
    assert not rows("SELECT room_id FROM explain_queue WHERE status = 'now' GROUP BY room_id HAVING count(*) > 1")
    assert not rows("SELECT room_id, position FROM explain_queue GROUP BY room_id, position HAVING count(*) > 1")
    assert len(rows("SELECT room_id FROM rooms WHERE is_default = 1")) == 1


def test_the_shops_own_words_pass_its_own_rules():
    """What the FAQ and the products say may be said on air: else the host would be stopped for quoting them."""
    checks = {hook.id: hook.check or {} for hook in bundle().state.hooks}
    phrases = [
        phrase.lower()
        for hook in ("no-superlatives", "no-medical-claims", "no-inner-workings")
        for phrase in checks[hook]["forbid_phrases"]["phrases"]
    ]
    patterns = [re.compile(checks[hook]["regex"]["must_not"]) for hook in ("speakable", "stays-in-the-app")]
    said = rows("SELECT answer AS text FROM faq UNION ALL SELECT selling_points FROM products UNION ALL SELECT caution FROM products "
                "UNION ALL SELECT script FROM room_links UNION ALL SELECT rule FROM campaigns UNION ALL SELECT title FROM coupons "
                "UNION ALL SELECT opening FROM rooms")  # fmt: skip
    bad = [(text, word) for row in said if (text := row["text"]) for word in phrases if word in text.lower()]
    bad += [(row["text"], p.pattern[:20]) for row in said for p in patterns if row["text"] and p.search(row["text"])]
    assert bad == []


def test_answers_can_be_spoken_in_one_reply():
    assert not rows("SELECT answer FROM faq WHERE length(answer) > 160")


def test_comments_cover_the_intents_and_both_languages():
    lines = (ROOM / "comments.jsonl").read_text().splitlines()
    comments = [msgspec.json.decode(line, type=CommentInput) for line in lines]
    assert len(comments) >= 30
    assert len({c.id for c in comments}) == len(comments)
    rooms = {row["room_id"] for row in rows("SELECT room_id FROM rooms")}
    assert {c.room for c in comments} == rooms
    names = {row["nickname"] for row in rows("SELECT nickname FROM viewers")}
    known = Counter(message.viewer in names for c in comments for message in c.viewer_messages())
    assert known[True] > 25
    assert any(c.session for c in comments)
    assert any(len(c.viewer_messages()) > 1 for c in comments)
    assert sum(bool(re.search("[\u4e00-\u9fff]", m.text)) for c in comments for m in c.viewer_messages()) >= 8
