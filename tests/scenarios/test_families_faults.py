"""What is said of families that are wrong: the place, what was found, what is allowed, and what may be meant."""

from __future__ import annotations

import pytest
from catalog_shop import FAMILIES, HARNESS, ITEMS, WORLD, changed, own_shop

from harnessctl.compile.revision import compiled
from harnessctl.errors import FaultsError, UsageError
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.validating import check_world
from harnessctl.simulate.world import open_world

FILE = "manifests/worlds/shop/families/shop.yaml"
MANIFEST = "manifests/worlds/shop.yaml"


def told(root) -> str:
    """What opening the scenarios says; the shop itself is in order."""
    with open_world(root / MANIFEST) as world, pytest.raises(FaultsError) as caught:
        Scenarios.open(world, compiled(root))
    return caught.value.render()


def test_the_shop_itself_has_no_fault(project):
    root = own_shop(project)
    assert check_world(root / MANIFEST, lambda name: compiled(root, name)) == []


@pytest.mark.parametrize(
    ("swap", "place", "says"),
    [
        (("intent: question", "intent: questions"), ":6:13: error[family-intent]",
         "the mix has no such intent; got questions; allowed question, chat\n    hint: did you mean `question`?"),
        (("draw: SELECT item_id, name, price FROM items", "draw: DELETE FROM items"), ":7:11: error[family-draw]",
         "the query may only read what is the same each time; got a write; allowed SELECT"),
        (("draw: SELECT item_id, name, price FROM items", "draw: SELECT random() AS item_id, 1 AS price, 'x' AS name"),
         ":7:11: error[family-draw]", "got the function random"),
        (("FROM items", "FROM item"), ":7:11: error[family-draw]", "SQLite cannot read the query: no such table: item"),
        (("FROM items", "FROM items; SELECT 1"), ":7:11: error[family-draw]", "one statement"),
        (("name, price FROM", "name, price, price FROM"), ":7:11: error[family-draw]", "got `price` twice"),
        (("draw: SELECT item_id, name, price FROM items",
          "draw: WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS item_id, 1 AS price, 'x' AS name FROM c"),
         ":7:11: error[family-draw]", "got more than 20000 rows; allowed at most 20000 rows"),
        (("FROM items", "FROM items WHERE price > 1000"), ":7:11: error[family-empty]",
         "the query gives no row, so that nothing can be drawn; allowed one row at least"),
        (("{name}, number", "{nam}, number"), ":9:43: error[family-slot]",
         "a slot is no column of the query; got nam; allowed item_id, name, price\n    hint: did you mean `name`?"),
        (("{name}, number", "{name, number"), ":9:57: error[family-slot]", "a brace is not part of a slot"),
        (("tool: get_item", "tool: get_items"), ":12:22: error[family-tool]",
         "the harness shop has no such tool; got get_items; allowed get_item, load_skill\n    hint: did you mean `get_item`?"),
        (("source: get_item", "source: get_stock"), ":13:47: error[family-tool]", "got get_stock"),
        (("skills: [answer]", "skills: [answers]"), ":11:16: error[family-skill]",
         "the harness shop has no such skill; got answers; allowed answer\n    hint: did you mean `answer`?"),
        (("skills: [answer]", "skills: []"), ":11:7: error[family-skill]",
         "the harness shop wants a Reply Skill before a reply; got no skill"),
        (("arguments: {item: ", "arguments: {items: "), "error[family-argument]", "'items' was unexpected"),
        (('{item: "{item_id}"}', '{item: "{name}"}'), ":12:50: error[family-argument]",
         '"Kettle" is not of type "integer"; got {"item":"Kettle"}\n    hint: the row item_id=1, name=Kettle, price=39.5'),
        (('{item: "{item_id}"}}', '{item: "{item_id}"}, compare: [name]}'), ":12:74: error[family-argument]",
         "an argument that is compared is not given; got name; allowed item"),
        (("Item {item_id} is {price} yuan.", "The {name}, which is number {item_id} in our long list, is {price} yuan."),
         ":16:14: error[family-length]", "it is longer than reply_max_chars allows; got 61 characters"),
        (("Item {item_id} is {price} yuan.", "Item {item_id} is not dear."), ":16:14: error[family-fact]",
         'it does not say a fact; got "Item 1 is not dear."; allowed 39.5 yuan'),
        (("is {price} yuan.", "is {price} yuan, sent for free."), ":16:14: error[family-claim]",
         'it makes a claim that must not be made; got "Item 1 is 39.5 yuan, sent for free."; allowed without "for free"'),
        (("in the list.", "in the list, for free."), ":18:14: error[family-claim]", "it makes a claim"),
        (("in the list.", "in the list that you find on the page of the shop."), ":18:14: error[family-length]",
         "it is longer than reply_max_chars allows"),
        (("      fallbacks:\n        en: [\"Please look at item {item_id} in the list.\"]\n", ""), ":11:7: error[family-language]",
         "gold has no fallbacks in a language that viewers write; got none; allowed en"),
        (('{item_id}"]\n    gold', '{item_id}"]\n      zh: ["{item_id}号多少钱"]\n    gold'), "error[family-language]",
         "gold has no replies in a language that viewers write; got en; allowed zh"),
        (("name, price FROM", "name, price, 'fr' AS language FROM"), ":8:5: error[family-language]",
         "the query gives rows in a language without messages; got fr; allowed en"),
        (("      claims: [for free]\n", "      end_state: [{table: order, where: {order_id: A1}}]\n"),
         ":14:27: error[family-end-state]",
         "the world has no such table; got order; allowed items, orders\n    hint: did you mean `orders`?"),
        (("      claims: [for free]\n", "      end_state: [{table: items, where: {item_id: 1}}]\n"),
         ":14:27: error[family-end-state]", "no tool can change this table: it is not mutable; got items; allowed orders"),
        (("      claims: [for free]\n", "      end_state: [{table: orders, where: {order: A1}}]\n"),
         ":14:43: error[family-end-state]", "the table orders has no such column; got order"),
        (("id: hello", "id: price"), ":19:9: error[family-duplicate]",
         f"two families of one harness have one id; got price\n    hint: the other is at {FILE}:5:5"),
        (("    draw: SELECT 1 AS one\n", "    draw: SELECT 1 AS one\n    context: {history: later}\n"),
         ":22:15: error[family-context]", "it does not fit the prompt's input"),
        ((" FROM items", " FROM items WHERE item_id = :item"), ":7:11: error[family-draw]",
         "a draw knows no request, so it has no values to name"),
        (("source: get_item", "source: load_skill"), ":13:47: error[family-fact]",
         "no call of gold is of the tool that tells the fact; got load_skill; allowed get_item"),
        (("en: [hello, good evening]", 'en: [hello, " "]'), ":23:19: error[family-text]",
         "family hello: a text is empty; got nothing; allowed a text"),
        (("claims: [for free]", 'claims: [""]'), ":14:16: error[family-text]", "a text is empty"),
        (("en: [Welcome to the shop!]", 'en: [""]'), "error[family-text]", "a text is empty"),
        (("    intent: chat\n", "    intent: chat\n    weight: 1.0e+300\n"), ":21:13: error[simulation-mix]",
         "the weight is too large to be added up; got 1e+300"),
        (("kind: Families", "kind: Family"), ":2:7: error[schema-value]", "allowed \"Families\""),
        (("messages:\n      en: [hello, good evening]", "messages: {}"), "error[schema-length]", "has too few entries"),
    ],
)  # fmt: skip
def test_families_that_are_wrong(project, swap, place, says):
    message = told(own_shop(project, families=changed(FAMILIES, swap)))
    assert FILE + place in message or (place.startswith("error") and place in message), message
    assert says in message, message


@pytest.mark.parametrize(
    ("swap", "place", "says"),
    [
        (("mix: {question: 3, chat: 1}", "mix: {question: 3, chat: 1, returns: 1}"), ":11:31: error[simulation-mix]",
         "no family of the harness shop has this intent; got returns; allowed question, chat"),
        (("mix: {question: 3, chat: 1}", "mix: {question: 0, chat: 0}"), "error[simulation-mix]",
         "no intent of the mix has a share"),
        (("shop/families/shop.yaml", "shop/families/shops.yaml"), ":12:14: error[family-file]",
         "a file of families is not there; got shop/families/shops.yaml\n    hint: did you mean `shop.yaml`?"),
        (("shop/families/shop.yaml", "../../../shop.yaml"), ":12:14: error[source-outside]", "lies outside the project"),
        (("{timeout: 0.1}", "{timeout: 0.7, stale: 0.6}"), "error[simulation-rates]",
         "the rates of faults are more than every call; got 1.3; allowed at most 1 together"),
        (("mix: {question: 3, chat: 1}", "mix: {question: 1.0e+308, chat: 1.0e+308}"), ":11:8: error[simulation-mix]",
         "the shares of the mix are too large to be added up"),
        (("chatter:\n", "chatter:\n    viewers: SELECT NULL AS viewer\n"), ":16:14: error[family-slot]",
         "`viewer` is no text; got nothing in the row viewer=None"),
        (("chatter:\n", "chatter:\n    viewers: SELECT abs(-9223372036854775807 - 1) AS viewer\n"), ":16:14: error[world-sql]",
         "SQLite cannot run the query: integer overflow"),
        (("chatter:\n", "chatter:\n    actions: WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n AS action FROM c\n"),
         ":16:14: error[world-sql]", "got more than 20000 rows"),
        (("chatter:\n", "chatter:\n    viewers: SELECT buyer FROM orders\n"), ":16:14: error[world-sql]", "no such column: buyer"),
        (("chatter:\n", "chatter:\n    actions: SELECT order_id FROM orders\n"), "error[family-slot]",
         "the query gives no column `action`; got order_id; allowed action"),
    ],
)  # fmt: skip
def test_simulations_that_are_wrong(project, swap, place, says):
    message = told(own_shop(project, world=changed(WORLD, swap)))
    assert place in message, message
    assert says in message, message


@pytest.mark.parametrize(
    ("field", "value"), [("history: 0.5", "history: 1.5"), ("{timeout: 0.1}", "{timeout: 2}"), ("chat: 1", "chat: -1")]
)
def test_rates_and_shares_are_in_their_ranges(project, field, value):
    root = own_shop(project, world=changed(WORLD, (field, value)))
    with pytest.raises(FaultsError) as caught:
        open_world(root / MANIFEST)
    assert "error[schema-range]" in caught.value.render()


def test_a_length_is_checked_over_every_row(project):
    items = ITEMS + "4,A teapot with a handle of bamboo and a strainer,88\n"
    message = told(own_shop(project, items=items, families=changed(FAMILIES, ("Item {item_id} is", "The {name} is"))))
    assert 'got 63 characters: "The A teapot with' in message


def test_a_tool_that_is_gone_from_the_harness_is_found_by_validate(project):
    root = own_shop(project)
    tools = (root / "manifests/tools/shop.yaml").read_text()
    (root / "manifests/tools/shop.yaml").write_text(tools.replace("name: get_item", "name: get_an_item"))
    skill = (root / "skills/answer/SKILL.md").read_text()
    (root / "skills/answer/SKILL.md").write_text(skill.replace("get_item", "get_an_item"))
    (fault, other) = check_world(root / MANIFEST, lambda name: compiled(root, name))
    assert (fault.code, fault.path, fault.got, fault.hint) == (
        "family-tool", FILE, "get_item", "did you mean `get_an_item`?",
    )  # fmt: skip
    assert (fault.line, other.line) == (12, 13)


def test_a_harness_that_is_gone(project):
    root = own_shop(project, families=changed(FAMILIES, ("harness: shop", "harness: market")))
    (fault,) = check_world(root / MANIFEST, lambda name: compiled(root, name))
    assert fault.render().startswith(f"{FILE}:3:10: error[family-harness]: the project has no such harness; got market")


def test_a_world_without_simulation_and_one_without_families_for_a_harness(project):
    root = own_shop(project)
    with open_world(root / MANIFEST) as world:
        with pytest.raises(UsageError, match="no families for the harness other") as caught:
            Scenarios.open(world, _named(compiled(root), "other"))
        assert "it has families for: shop" in caught.value.hint
    (root / MANIFEST).write_text(WORLD[: WORLD.index("simulation:")])
    with open_world(root / MANIFEST) as world, pytest.raises(UsageError, match="draws no scenarios"):
        Scenarios.open(world, compiled(root))


def _named(bundle, name):
    import msgspec

    return msgspec.structs.replace(bundle, name=name)


def test_an_empty_world_is_refused(project):
    message = told(own_shop(project, items="item_id,name,price\n"))
    assert "error[family-empty]: family price: the query gives no row, so that nothing can be drawn" in message


def test_a_limit_of_the_harness_may_be_the_reason(project):
    harness = changed(HARNESS, ("{value: 60, range: [40, 80]}", "{value: 20, range: [20, 80]}"))
    message = told(own_shop(project, harness=harness))
    assert "it is longer than reply_max_chars allows" in message
    assert "allowed 20" in message


def test_every_fault_is_told_at_once(project):
    families = changed(FAMILIES, ("intent: question", "intent: x"), ("skills: [answer]\n      replies", "skills: [a]\n      replies"))  # fmt: skip
    message = told(own_shop(project, families=families))
    assert "family-intent" in message
    assert "family-skill" in message
    assert "errors found" in message


#: A recursion without an end: sorted, it gives no row for as long as it is asked.
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS item_id, 'x' AS name, 1 AS price FROM c"


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr("harnessctl.simulate.context.MAX_STEPS", 3_000_000)


@pytest.mark.usefixtures("few_steps")
def test_a_draw_without_an_end_is_given_up(project):
    families = changed(FAMILIES, ("draw: SELECT item_id, name, price FROM items", f"draw: {ENDLESS}"))
    message = told(own_shop(project, families=families))
    assert f"{FILE}:7:11: error[family-draw]" in message
    assert "given up after 3,000,000 steps\n    hint: does a recursive part of it come to an end?" in message


@pytest.mark.usefixtures("few_steps")
def test_a_query_of_the_chatter_without_an_end_is_given_up(project):
    query = ENDLESS.replace("item_id", "viewer")
    message = told(own_shop(project, world=changed(WORLD, ("chatter:\n", f"chatter:\n    viewers: {query}\n"))))
    assert ":16:14: error[world-sql]: SQLite cannot run the query: given up after 3,000,000 steps" in message


@pytest.mark.usefixtures("few_steps")
def test_a_query_of_the_context_without_an_end_is_found_when_the_world_is_opened(project):
    root = own_shop(project, world=changed(WORLD, ("SELECT item_id FROM items ORDER BY item_id", f'"{ENDLESS}"')))
    (fault,) = check_world(root / MANIFEST)
    assert (fault.code, fault.line) == ("world-sql", 9)
    assert "the query takes too long" in fault.message


def test_a_text_that_is_empty_in_one_row(project):
    families = changed(FAMILIES, ("SELECT item_id, name, price FROM", "SELECT item_id, name, price, trim(name, 'Cup') AS cut FROM"),
                       ('"how much is item {item_id}?"', '"{cut} "'))  # fmt: skip
    message = told(own_shop(project, families=families))
    assert "a text is empty; got nothing; allowed a text\n    hint: the row item_id=3, name=Cup, price=12" in message


def test_a_room_that_is_a_list(project):
    items = changed(
        ITEMS, ("name,price", "name,price,room"), (",39.5", ",39.5,[1]"), (",120", ",120,[2]"), (",12\n", ",12,[3]\n")
    )
    world = changed(WORLD, ("{price: real}", "{price: real, room: json}"))
    families = changed(FAMILIES, ("name, price FROM items", "name, price, room FROM items"))
    message = told(own_shop(project, items=items, world=world, families=families))
    assert ":7:11: error[family-slot]: family price: `room` cannot be a request's; got list in the row" in message
