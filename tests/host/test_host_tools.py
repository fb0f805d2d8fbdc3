"""Every tool against the shipped world: what it returns, what it writes, what it refuses."""

from __future__ import annotations

import asyncio
import time

import jsonschema_rs
import msgspec
import pytest
from host_agent import bundle, comment, world

from harnessctl.runtime.code import Code
from harnessctl.runtime.context import ContextReader
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.toolset import ToolSet


class Desk:
    """Calls the tools of a harness for one viewer in one room, on a sandbox of its own."""

    def __init__(self, harness: str = "live-stream") -> None:
        self.state = bundle(harness).state
        self.world = world().sandbox()
        self.prompt = ContextReader(self.state.prompt)
        code = Code(bundle(harness).digest, self.state.code)
        self.tools = ToolSet(self.state, code=code, surface=SurfaceView(self.state), env={})
        assert self.tools.warnings == []

    def call(self, name, viewer="mira_k", room="spring-table", text="hi", on_air=None, **args):
        asked = comment(text, viewer=viewer, room=room)
        if on_air is not None:
            asked = msgspec.structs.replace(asked, context={"current_link_id": on_air})
        context = self.prompt.read(asked, self.world)
        tool = next(tool for tool in self.state.tools if tool.name == name)
        wrong = self.tools.check_arguments(name, args)
        assert wrong is None, wrong
        limits = self.state.limit_values()
        ctx = ToolContext(context=context, session={}, world=self.world, limits=limits, deadline=time.monotonic() + 5)

        async def run():
            return await self.tools.call(tool, args, ctx, 5)

        outcome = asyncio.run(run())
        if outcome.status == "ok" and tool.result is not None:
            jsonschema_rs.validator_for(tool.result).validate(outcome.result)
        return outcome

    def ok(self, name, **args):
        outcome = self.call(name, **args)
        assert outcome.status == "ok", outcome.error
        return outcome.result

    def refused(self, name, status="error", **args):
        outcome = self.call(name, **args)
        assert outcome.status == status, outcome
        return outcome.error

    def one(self, sql):
        return self.world.connection().execute(sql).fetchone()[0]


@pytest.fixture
def desk():
    made = Desk()
    yield made
    made.world.close()


@pytest.fixture
def mini():
    made = Desk("mini")
    yield made
    made.world.close()


def test_get_product_in_both_languages(desk):
    found = desk.ok("get_product", link_id=5)
    assert (found["name"], found["price"], found["stock"]) == ("Pebblewick Digital Kitchen Scale", 59, 210)
    assert found["specs"]["Range"] == "1 g to 5 kg"
    found = desk.ok("get_product", link_id=16, room="jiangnan-haowu")
    assert found["name"] == "云上禾真丝方巾90厘米"
    assert found["specs"]["材质"] == "100%桑蚕丝"


def test_get_product_knows_the_room_and_its_numbers(desk):
    assert desk.refused("get_product", link_id=99) == "there is no link 99 in this room"
    assert desk.refused("get_product", link_id=10**30).startswith("there is no link 1000")
    assert desk.refused("get_product", link_id=1, room="nowhere") == "there is no such live room"


def test_search_products_finds_by_words_and_price(desk):
    def links(query, **more):
        return [link["link_id"] for link in desk.ok("search_products", query=query, **more)["links"]]

    assert links("the cast iron pan")[0] == 1
    assert links("steamer")[0] == 10
    assert links("tea") == []
    assert links("kettle", max_price=100) == []
    assert links("我想要手帕丝巾方巾", room="jiangnan-haowu")[0] == 16
    assert links("spaceship") == []


def test_compare_products(desk):
    links = desk.ok("compare_products", link_ids=[2, 1])["links"]
    assert [(link["link_id"], link["price"]) for link in links] == [(2, 159), (1, 189)]
    assert "no link 88" in desk.refused("compare_products", link_ids=[1, 88])


def test_check_stock_of_options(desk):
    room = "weekend-wardrobe"
    found = desk.ok("check_stock", link_id=1, option="Black M", room=room)
    assert found["option"] == "black, M"
    assert found["stock"] == 3
    assert all(other["stock"] for other in found["other_options"])
    assert "more than one option fits" in desk.refused("check_stock", link_id=1, option="black", room=room)
    assert "no option fits" in desk.refused("check_stock", link_id=1, option="pink, M", room=room)
    whole = desk.ok("check_stock", link_id=1, room=room)
    assert (whole["option"], whole["stock"]) == (None, desk.one("SELECT stock FROM products WHERE product_id = 'P052'"))


def test_an_option_may_cost_more(desk):
    assert desk.ok("check_stock", link_id=1, option="sage 1.8 m bed", room="calm-home")["price"] == 279


@pytest.mark.parametrize("region", ["Tibet", "tibet", "西藏", "西藏拉萨", "Lhasa, Tibet"])
def test_delivery_to_a_place(desk, region):
    found = desk.ok("get_delivery", link_id=1, region=region)
    assert (found["region"], found["days_min"], found["days_max"], found["surcharge"]) == ("Tibet", 6, 9, 15)


def test_delivery_without_a_place_and_to_nowhere(desk):
    assert desk.ok("get_delivery", link_id=6) == {
        "link_id": 6,
        "ships_from": "Hangzhou",
        "ships_within_h": 24,
        "freight": 8,
    }
    assert "ask for the province" in desk.refused("get_delivery", link_id=6, region="Atlantis")


def test_return_policy_in_the_rooms_language(desk):
    found = desk.ok("get_return_policy", link_id=4, room="glow-hour")
    assert (found["no_reason_days"], found["condition"]) == (7, "unopened only, unless faulty")
    assert desk.ok("get_return_policy", link_id=6, room="jiangnan-haowu")["condition"].startswith("食品")


def test_search_faq_and_its_topic(desk):
    assert desk.ok("search_faq", query="包邮吗")[0]["answer"].startswith("单件满59元包邮")
    assert {row["topic"] for row in desk.ok("search_faq", query="return postage", topic="returns")} == {"returns"}


def test_orders_are_the_viewers_own(desk):
    latest = desk.ok("get_order")["orders"]
    assert 1 <= len(latest) <= 3
    mine = latest[0]["order_id"]
    assert desk.ok("get_order", order_id=mine.lower())["orders"][0]["order_id"] == mine
    theirs = desk.one("SELECT order_id FROM orders WHERE viewer_id = 'V002'")
    assert desk.refused("get_order", "denied", order_id=theirs) == "not permitted: the order belongs to another viewer"
    assert desk.refused("get_order", order_id="LS0") == "there is no order LS0"
    assert "not signed in" in desk.refused("get_order", "denied", viewer="stranger")


def order(desk, where):
    return desk.world.connection().execute(
        "SELECT o.order_id, v.nickname FROM orders AS o JOIN viewers AS v USING (viewer_id) JOIN products AS p USING (product_id) "
        f"JOIN policies AS c USING (category) LEFT JOIN tickets AS t USING (order_id) WHERE t.ticket_id IS NULL AND {where} LIMIT 1"
    ).fetchone()  # fmt: skip


def test_a_ticket_is_opened_once(desk):
    number, viewer = order(desk, "o.status = 'delivered' AND o.delivered_on >= '2026-03-14' AND no_reason_days = 7")
    made = desk.ok("create_ticket", viewer=viewer, order_id=number, kind="return", reason="too small")
    assert desk.one(f"SELECT reason FROM tickets WHERE ticket_id = '{made['ticket_id']}'") == "too small"
    again = desk.refused("create_ticket", viewer=viewer, order_id=number, kind="return", reason="too small")
    assert again == "a case of kind return is open for this order already"


@pytest.mark.parametrize(
    ("where", "kind", "told"),
    [
        ("o.status = 'shipped'", "return", "can begin once it is delivered"),
        ("o.status = 'delivered' AND o.delivered_on < '2026-03-01'", "exchange", "within"),
        ("o.status = 'delivered' AND no_reason_days = 0 AND o.delivered_on < '2026-03-20'", "return", "within 0 days"),
    ],
)
def test_a_ticket_needs_the_right_order(desk, where, kind, told):
    number, viewer = order(desk, where)
    assert told in desk.refused("create_ticket", viewer=viewer, order_id=number, kind=kind, reason="no need")


def test_a_complaint_is_always_taken(desk):
    number, viewer = order(desk, "o.status = 'shipped'")
    assert desk.ok("create_ticket", viewer=viewer, order_id=number, kind="complaint", reason="late")["status"] == "open"


def test_nobody_opens_a_case_for_another(desk):
    number, _ = order(desk, "o.status = 'shipped' AND v.nickname <> 'mira_k'")
    assert "belongs to another" in desk.refused(
        "create_ticket", "denied", order_id=number, kind="complaint", reason="late"
    )


def test_cart(desk):
    desk.ok("add_to_cart", link_id=1, quantity=2)
    assert (
        desk.one("SELECT quantity FROM carts WHERE viewer_id = 'V001' AND link_id = 1 AND room_id = 'spring-table'")
        == 2
    )
    assert desk.refused("add_to_cart", link_id=16) == "only 0 are left"


def test_quotes_count_coupon_and_freight(desk):
    assert desk.ok("quote_price", link_id=1, quantity=2, coupon_id="C-ST-20")["total"] == 358
    found = desk.ok("quote_price", link_id=1, coupon_id="C-ST-COOK")
    assert (found["discount"], found["total"]) == (18.9, 170.1)
    assert desk.ok("quote_price", link_id=6)["total"] == 47
    assert desk.refused("quote_price", link_id=6, coupon_id="C-ST-20") == "the coupon needs 249 yuan; the order is 39"
    assert (
        desk.refused("quote_price", link_id=5, quantity=4, coupon_id="C-ST-COOK") == "the coupon is for cookware only"
    )
    assert desk.refused("quote_price", link_id=5, coupon_id="C-GH-15") == "there is no coupon C-GH-15 in this room"


def test_coupons_that_can_be_claimed(desk):
    everywhere = {row["coupon_id"] for row in desk.ok("list_coupons")["coupons"]}
    assert everywhere == {"C-ALL-10", "C-NEW-15", "C-GOLD-30", "C-ST-20", "C-ST-COOK", "C-ST-FAN"}
    assert "C-ST-COOK" not in {row["coupon_id"] for row in desk.ok("list_coupons", link_id=5)["coupons"]}
    assert "C-GH-MASK" not in {row["coupon_id"] for row in desk.ok("list_coupons", room="glow-hour")["coupons"]}
    titles = [row["title"] for row in desk.ok("list_coupons", room="jiangnan-haowu", link_id=1)["coupons"]]
    assert "茶叶满98打九折" in titles


def test_a_coupon_is_issued_within_what_is_allowed(desk):
    left = desk.one("SELECT remaining FROM coupons WHERE coupon_id = 'C-ST-20'")
    desk.ok("issue_coupon", coupon_id="C-ST-20")
    assert desk.one("SELECT remaining FROM coupons WHERE coupon_id = 'C-ST-20'") == left - 1
    assert desk.refused("issue_coupon", coupon_id="C-ST-20") == "the viewer has claimed this coupon already"
    assert desk.refused("issue_coupon", coupon_id="C-GH-MASK", room="glow-hour") == "the coupon has run out"
    assert desk.refused("issue_coupon", coupon_id="C-NEW-15") == "the coupon is for viewers who joined today"
    assert desk.ok("issue_coupon", coupon_id="C-NEW-15", viewer="rosa.b")["granted"]
    assert desk.refused("issue_coupon", coupon_id="C-GOLD-30", viewer="oldpan") == "the coupon is for gold members"
    assert "not signed in" in desk.refused("issue_coupon", "denied", coupon_id="C-ST-20", viewer="stranger")


def test_bundles(desk):
    (found,) = desk.ok("list_bundles", link_id=1)["bundles"]
    assert (found["link_ids"], found["full_price"], found["bundle_price"], found["saves"]) == ([1, 12], 338, 309, 29)
    assert len(desk.ok("list_bundles")["bundles"]) == 3
    assert desk.ok("list_bundles", link_id=5) == {"bundles": []}


def test_the_link_on_air_is_that_of_the_request(desk):
    assert desk.ok("get_queue", on_air=4) == {"now": 4, "waiting": [2, 3, 5, 6, 7, 8, 9]}
    assert desk.refused("queue_link", link_id=4, place="next", on_air=4) == "link 4 is on air now"


def test_the_queue_is_kept(desk):
    assert desk.ok("get_queue") == {"now": 1, "waiting": [2, 3, 4, 5, 6, 7, 8, 9]}
    assert desk.ok("queue_link", link_id=9, place="next") == {
        "link_id": 9,
        "place": 1,
        "waiting": [9, 2, 3, 4, 5, 6, 7, 8],
    }
    assert desk.ok("queue_link", link_id=12, place="last")["place"] == 9
    assert desk.ok("get_queue")["waiting"] == [9, 2, 3, 4, 5, 6, 7, 8, 12]
    assert desk.refused("queue_link", link_id=1, place="next") == "link 1 is on air now"
    assert "sold out" in desk.refused("queue_link", link_id=16, place="last")


def test_the_prompt_sees_the_changed_queue(desk):
    desk.ok("queue_link", link_id=9, place="next")
    assert desk.prompt.read(comment("hi"), desk.world)["status"]["queue"] == "9, 2, 3, 4, 5, 6, 7, 8"


def test_a_link_that_was_shown_can_be_shown_again(desk):
    assert 1 not in desk.ok("get_queue", room="glow-hour")["waiting"]
    assert desk.ok("queue_link", link_id=1, place="last", room="glow-hour")["waiting"][-1] == 1


def test_cards(desk):
    assert desk.ok("show_card", link_id=3) == {"link_id": 3, "shown": True}
    assert desk.one("SELECT max(card_id) FROM screen_cards") == "S0003"
    assert "sold out" in desk.refused("show_card", link_id=16)


def test_handing_over(desk):
    made = desk.ok("hand_to_service", topic="refund is late", viewer="stranger")
    assert made["hours"] == "9:00 to 23:00"
    theirs = desk.one("SELECT order_id FROM orders WHERE viewer_id = 'V002'")
    assert "another viewer" in desk.refused("hand_to_service", "denied", topic="refund", order_id=theirs)


def test_arguments_that_do_not_fit_are_named():
    desk = Desk()
    for name, args, told in [
        ("get_product", {}, "link_id"),
        ("get_product", {"link_id": "5"}, "link_id"),
        ("compare_products", {"link_ids": [1]}, "link_ids"),
        ("queue_link", {"link_id": 2, "place": "now"}, "place"),
        ("stay_silent", {"reason": "boring"}, "reason"),
        ("create_ticket", {"order_id": "x", "kind": "gift", "reason": "no"}, "kind"),
    ]:
        assert told in (desk.tools.check_arguments(name, args) or "")


def test_every_tool_of_the_host_is_called_above(request):
    source = request.path.read_text()
    names = {tool.name for tool in bundle().state.tools} - {"load_skill"}
    assert {name for name in names if f'"{name}"' not in source} == set()


def test_mini_results_are_short(mini):
    found = mini.ok("get_product", link_id=2)
    assert found == {
        "link": 2,
        "name": "Fenwhistle Non-Stick Wok 30 cm",
        "price": 159,
        "stock": 120,
        "facts": "Diameter 30 cm; Weight 1.4 kg; Coating ceramic, PFAS-free; Hobs gas, induction",
        "coupon": found["coupon"],
    }
    assert mini.ok("get_product")["link"] == 1
    assert mini.ok("search_faq", query="how much is shipping").startswith("Items from 59 yuan")
    assert mini.ok("search_faq", query="spaceship") == "no answer found"
    assert mini.ok("queue_link", link_id=4) == {"link": 4, "next": True}
    assert "link_id" in (mini.tools.check_arguments("queue_link", {}) or "")
