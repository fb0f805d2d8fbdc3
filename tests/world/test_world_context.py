"""Context of a request: bound values, read-only queries, faults at the line of the manifest."""

from __future__ import annotations

import pytest
from world_project import MANIFEST, shop

from harnessctl.errors import FaultsError
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.simulate.world import open_world


def ask(text="?", viewer="viewer", **fields):
    return CommentInput(id="1", messages=[ViewerMessage(text, viewer=viewer)], **fields)


def test_values_are_bound_by_name(project):
    with open_world(shop(project)) as world:
        context = world.context(ask(viewer="ann", text="is shipping free", context={"link": 2, "lang": "en"}))
    assert context["item"] == {"id": 2, "name": "Lamp, small", "price": 39.5, "weight": 1, "code": "12"}
    assert context["orders"] == [{"order_id": "A1"}]
    assert [row["id"] for row in context["faq"]] == [1]


def test_a_value_that_is_missing_is_null(project):
    with open_world(shop(project)) as world:
        assert world.context(CommentInput(id="1", text="hello")) == {"item": None, "orders": [], "faq": []}


@pytest.mark.parametrize(
    "value", ["1 OR 1=1", "' --", {"a": [1]}, [1, 2], True, None, 1.5, 2**70, "\ud800", float("nan")]
)
def test_any_value_can_be_bound(project, value):
    with open_world(shop(project)) as world:
        assert world.context(ask(context={"link": value}))["item"] in (None, *[
            {"id": 1, "name": "Sunscreen", "price": 89, "weight": 0.25, "code": "007"} if value is True else None
        ])  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM itmes", "no such table: itmes"),
        ("SELEC 1", "syntax error"),
        ("SELECT ?", "values are bound by name"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("DELETE FROM orders", "may only read what is the same each time; got a write"),
        ("INSERT INTO orders VALUES (1, 2, 3)", "got a write"),
        ("ATTACH '/etc/passwd' AS x", "got ATTACH"),
        ("PRAGMA user_version", "got PRAGMA"),
        ("SELECT random()", "got the function random"),
        ("SELECT load_extension('x')", "got the function load_extension"),
        ("DROP TABLE orders", "may only read"),
        ("SELECT * FROM sqlite_master", None),
    ],
)
def test_queries_are_proven_when_the_world_is_opened(project, sql, expected):
    manifest = shop(project, manifest=MANIFEST.replace("SELECT * FROM items WHERE id = :link", sql))
    if expected is None:
        open_world(manifest).close()
        return
    with pytest.raises(FaultsError) as caught:
        open_world(manifest)
    told = caught.value.render()
    assert "manifests/worlds/shop.yaml:11:26: error[world-sql]" in told
    assert expected in told


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (
            "{search: faq, where: {lang: lang}",
            "{search: faq, sql: SELECT 1, where: {lang: lang}",
            "one of `sql` and `search`",
        ),
        (
            "{search: faq, where: {lang: lang}",
            "{search: docs, where: {lang: lang}",
            "what is searched is not known; got docs",
        ),
        ("where: {lang: lang}", "where: {language: lang}", "the FAQ has no filter `language`"),
        ("faq: {table: faq, filter: [lang, item]}\n", "", "the world has no `faq` to search"),
    ],
)
def test_a_search_must_be_possible(project, was, now, expected):
    with pytest.raises(FaultsError) as caught:
        open_world(shop(project, manifest=MANIFEST.replace(was, now)))
    assert expected in caught.value.render()


def test_all_messages_are_searched(project):
    with open_world(shop(project)) as world:
        messages = [ViewerMessage("hello"), ViewerMessage("包邮吗")]
        assert world.context(CommentInput(id="1", messages=messages))["faq"][0]["id"] == 3


def test_unknown_fields_and_syntax_are_faults_of_the_manifest(project):
    for text, told in [
        (MANIFEST.replace("mutable", "mutabel"), "unknown field `mutabel`"),
        (MANIFEST + "  bad: [\n", "shop.yaml"),
        (MANIFEST.replace("version: 1.0.0\n", ""), "the field `version` is missing"),
    ]:
        with pytest.raises(FaultsError) as caught:
            open_world(shop(project, manifest=text))
        assert told in caught.value.render()
