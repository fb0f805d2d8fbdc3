"""Injected faults: at the rates that were set, the same for the same call, in tools that run only, and through an agent."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.bundle.state import Tool
from harnessctl.manifests.specs.world import FaultRates
from harnessctl.simulate.faults import KINDS, STALE, Faults

TOOL = Tool(name="get_item", description=[], group="retrieval", run={"python": "shop:get_item"},
            result={"type": "object", "required": ["price"]})  # fmt: skip
RATES = FaultRates(timeout=0.05, malformed=0.03, denied=0.02, stale=0.04, persist=0.3)
#: What 1% of fair samples exceed, by degrees of freedom.
CHI_SQUARE_1_PERCENT = {1: 6.635, 4: 13.277}
N = 20_000


def kinds(faults: Faults, number: int = 0, n: int = N) -> list[str]:
    drawn = (faults.draw(f"r{i}", TOOL, {"item": i % 7}, number) for i in range(n))
    return [fault.kind if fault is not None else "none" for fault in drawn]


def chi_square(counts: Counter[str], shares: dict[str, float]) -> float:
    n = sum(counts.values())
    return sum((counts[name] - n * share) ** 2 / (n * share) for name, share in shares.items())


@pytest.mark.parametrize("seed", [1, 20260320])
def test_first_calls_fail_at_the_rates_that_were_set(seed):
    shares = {kind: getattr(RATES, kind) for kind in KINDS}
    shares["none"] = 1 - sum(shares.values())
    assert chi_square(Counter(kinds(Faults(RATES, seed=seed))), shares) < CHI_SQUARE_1_PERCENT[4]


def test_a_share_of_faults_comes_again_when_the_call_is_made_again():
    faults = Faults(RATES, seed=3)
    pairs = list(zip(kinds(faults), kinds(faults, 1), kinds(faults, 2), strict=True))
    failed = [pair for pair in pairs if pair[0] != "none"]
    assert all(again == later == "none" for first, again, later in pairs if first == "none")
    assert all(again in (first, "none") and later == again for first, again, later in failed)
    again = Counter("again" if pair[1] != "none" else "clean" for pair in failed)
    assert chi_square(again, {"again": 0.3, "clean": 0.7}) < CHI_SQUARE_1_PERCENT[1]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    request=st.text(max_size=12),
    args=st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
    number=st.integers(0, 3),
)
def test_equal_arguments_give_equal_answers_whatever_was_asked_before(seed, request, args, number):
    rates = FaultRates(timeout=0.4, stale=0.4, persist=0.5)
    faults = Faults(rates, seed=seed)
    for other in range(5):
        faults.draw(f"other{other}", TOOL, args, other)
    first = faults.draw(request, TOOL, args, number)
    again = Faults(rates, seed=seed).draw(request, TOOL, dict(reversed(args.items())), number)
    if first is None or again is None:
        assert first is again
    else:
        assert (first.kind, first.status, first.error) == (again.kind, again.status, again.error)
        assert first.change is None or first.change({"price": 40}) == again.change({"price": 40})


def test_a_call_with_other_arguments_is_a_first_call():
    """Which call of a tool it is does not matter; only whether that very call was made before."""
    faults = Faults(FaultRates(timeout=0.5), seed=1)
    by_item = [faults.draw("r", TOOL, {"item": item}, 0) is not None for item in range(400)]
    assert 150 < sum(by_item) < 250


@pytest.mark.parametrize(
    "tool",
    [
        Tool(name="load_skill", description=[], group="flow-control", run={"builtin": "load_skill"}),
        Tool(name="stay_silent", description=[], group="flow-control", final={"route": "silent"}),
    ],
)
def test_what_does_not_run_cannot_fail(tool):
    faults = Faults(FaultRates(timeout=1.0, persist=1.0))
    assert all(faults.draw(f"r{i}", tool, {}, 0) is None for i in range(50))


def test_without_rates_there_is_no_fault():
    assert set(kinds(Faults(FaultRates(persist=1.0)), n=200)) == {"none"}


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [("timeout", "timeout", "answer"), ("denied", "denied", "not permitted: "),
     ("malformed", "error", "the tool's result does not fit its schema: /price")],
)  # fmt: skip
def test_what_a_fault_comes_to(kind, status, error):
    fault = Faults(FaultRates(**{kind: 1.0})).draw("r", TOOL, {"item": 1}, 0)
    assert (fault.kind, fault.status, fault.change) == (kind, status, None)
    assert error in fault.error


def test_an_old_answer_says_so_and_keeps_ids_and_what_was_asked():
    fault = Faults(FaultRates(stale=1.0)).draw("r", TOOL, {"item": 5, "quantity": 3}, 0)
    now = {"item": 5, "link_id": 40, "quantity": 3, "price": 100, "rest": [{"stock": 20, "name": "5 L"}], "ok": True}
    old = fault.change(now)
    assert old[STALE] is True
    assert old["as_of"].endswith("minutes ago")
    assert {name: old[name] for name in ("item", "link_id", "quantity", "ok")} == {
        "item": 5, "link_id": 40, "quantity": 3, "ok": True,
    }  # fmt: skip
    assert old["price"] in (80, 90, 110, 125)
    assert old["rest"][0] == {"stock": round(20 * old["price"] / 100), "name": "5 L"}
    assert now["price"] == 100
    assert fault.change(["a", 10])["result"][0] == "a"


def test_faults_reach_the_record_and_the_model_through_an_agent(project):
    """Every call of the tool fails at first; made again it is answered, and made with other arguments it fails again."""
    from catalog_shop import own_shop

    from harnessctl.compile.revision import compiled
    from harnessctl.records.comment import CommentInput
    from harnessctl.runtime.agent import Agent
    from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
    from harnessctl.simulate.world import open_world

    root = own_shop(project)
    calls = [("load_skill", {"skill": "answer"}), ("get_item", {"item": 1})]
    script = [
        ScriptedReply(tool_calls=[ScriptedCall(name, args) for name, args in calls]),
        ScriptedReply(tool_calls=[ScriptedCall("get_item", {"item": 1}), ScriptedCall("get_item", {"item": 2})]),
        ScriptedReply(content="Item 1 is 39.5 yuan."),
    ]

    async def run():
        with open_world(root / "manifests/worlds/shop.yaml") as world:
            faults = Faults(FaultRates(timeout=1.0))
            async with await Agent.open(
                compiled(root), ScriptedModel(script), world=world, env={}, faults=faults
            ) as agent:
                return await agent.run(CommentInput(id="r", text="how much is item 1"))

    trajectory = asyncio.run(run())
    assert [(call.name, call.status, call.fault) for call in trajectory.tools] == [
        ("load_skill", "ok", None), ("get_item", "timeout", "timeout"), ("get_item", "ok", None),
        ("get_item", "timeout", "timeout"),
    ]  # fmt: skip
    assert (trajectory.stop, trajectory.reply) == ("replied", "Item 1 is 39.5 yuan.")
    assert any("answer" in str(message.get("content")) for message in trajectory.messages if message["role"] == "tool")


def test_what_was_just_written_is_not_old():
    faults = Faults(FaultRates(stale=1.0))
    assert faults.draw("r", TOOL, {"item": 1}, 0) is not None
    assert faults.draw("r", msgspec.structs.replace(TOOL, effect="write"), {"item": 1}, 0) is None
