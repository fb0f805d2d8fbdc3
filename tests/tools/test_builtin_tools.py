"""Built-in tools: the FAQ search hands query, top_k and filters to the world."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest


class FakeWorld:
    digest = "0" * 64

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def context(self, request: Any, names: object = None) -> dict[str, Any]:
        return {}

    def connection(self) -> sqlite3.Connection:
        raise AssertionError("not asked for")

    def search_faq(self, query: str, *, where: dict[str, Any], top_k: int) -> list[dict[str, Any]]:
        self.asked.append((query, where, top_k))
        if query == "broken":
            raise sqlite3.OperationalError("no such table: faq")
        return [{"question": "Q", "answer": "A"}]


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        ({"query": "size?"}, ("size?", {}, 3)),
        ({"query": "尺码", "top_k": 500, "sku": "a"}, ("尺码", {"sku": "a"}, 50)),
        ({"query": "x", "top_k": 1, "filters": {"sku": "a", "shop": None}}, ("x", {"sku": "a"}, 1)),
    ],
)
def test_a_search_reaches_the_world(bench: Any, args: dict[str, Any], asked: Any) -> None:
    world = FakeWorld()
    tool = bench.tool(run={"builtin": "search_faq"})
    outcome = bench.run(bench.make(tool), tool, args, ctx=bench.ctx(world=world))
    assert (outcome.status, outcome.result, world.asked) == ("ok", [{"question": "Q", "answer": "A"}], [asked])


def test_no_world_and_a_broken_one_are_errors(bench: Any) -> None:
    tool = bench.tool(run={"builtin": "search_faq"})
    assert bench.run(bench.make(tool), tool, {"query": "x"}).error == "there is no world to search in"
    broken = bench.run(bench.make(tool), tool, {"query": "broken"}, ctx=bench.ctx(world=FakeWorld()))
    assert broken.error == "the tool failed: OperationalError: no such table: faq"


def test_skills_are_not_loaded_here(bench: Any) -> None:
    tool = bench.tool("load_skill", run={"builtin": "load_skill"})
    toolset = bench.make(tool)
    assert toolset.warnings == []
    assert bench.run(toolset, tool, {"skill": "x"}).status == "error"
