"""Rounds: who is answered together, what is read once, and that nobody's trouble is another's."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harnessctl.decode.batched import BatchedModel
from harnessctl.decode.passes import Feed, SlotReader
from harnessctl.decode.rounds import Member
from harnessctl.decode.speech import Speech
from harnessctl.decode.weights import Weights
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, Sampling
from tests.decode_batched.conftest import SYSTEM, alone, answers, ask, assert_same

Make = Callable[..., BatchedModel]


async def yields(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


def rollouts(model: BatchedModel, delays: Callable[[int, int], int], *, calls: int = 3) -> list[list[int]]:
    """Members that ask `calls` times each (number 2 only once), with so many turns of the event loop in between."""

    async def one(number: int, member: Member) -> list[int]:
        said: list[int] = []
        async with member:
            for call in range(1 if number == 2 else calls):
                await yields(delays(number, call))
                content = f"call {call} " + "of many " * number
                sampling = Sampling(temperature=1.0, seed=call, max_tokens=4 + number)
                reply = await model.complete(ask(number, content=content, sampling=sampling, tools=[]))
                said += reply.completion_ids or []
        return said

    async def together() -> list[list[int]]:
        members = [model.member() for _ in range(6)]
        return await asyncio.gather(*(one(number, member) for number, member in enumerate(members)))

    return asyncio.run(together())


def test_the_passes_are_the_same_however_long_members_take(batched: Make, passes: list[list[Feed]]) -> None:
    seen, said = [], []
    for seed in range(3):
        dice = random.Random(seed)
        model = batched(rows=4)
        said.append(rollouts(model, lambda _, __, dice=dice: dice.choice((0, 0, 1, 30, 300))))
        seen.append(list(passes))
        passes.clear()
    assert said[0] == said[1] == said[2]
    assert seen[0] == seen[1] == seen[2]


def test_rows_are_in_the_order_of_request_ids(batched: Make, passes: list[list[Feed]]) -> None:
    rollouts(batched(), lambda number, _: 50 - number, calls=1)
    prompts = [len(feed.ids) for feed in passes[0]] + [len(feed.ids) for feed in passes[1]]
    assert len(prompts) >= 6
    assert prompts[1:6] == sorted(prompts[1:6])  # longer with each number, and slots are given in order


def test_a_round_waits_for_every_member_and_begins_when_one_leaves(batched: Make, passes: list[list[Feed]]) -> None:
    model = batched()

    async def run() -> None:
        first, second = model.member(), model.member()

        async def asks() -> ModelReply:
            async with first:
                return await model.complete(ask(0))

        task = asyncio.create_task(asks())
        await yields(50)
        # Busy from the moment at which a round is begun, whenever the thread comes to it.
        assert not task.done() and not passes and not model._rounds._is_busy
        second.leave()
        assert (await task).completion_ids

    asyncio.run(run())


@pytest.mark.parametrize("trouble", ["raises", "is cancelled"])
def test_a_member_in_trouble_leaves(batched: Make, trouble: str) -> None:
    model = batched()

    async def asks(member: Member, number: int) -> list[ModelReply]:
        async with member:
            return [await model.complete(ask(number)) for _ in range(2)]

    async def fails(member: Member) -> None:
        async with member:
            await model.complete(ask(7))
            if trouble == "raises":
                raise KeyError("a tool")
            await asyncio.Event().wait()

    async def run() -> None:
        members = [model.member() for _ in range(3)]
        bad = asyncio.create_task(fails(members[2]))
        good = [asyncio.create_task(asks(member, number)) for number, member in enumerate(members[:2])]
        if trouble == "is cancelled":
            await asyncio.wait(good, timeout=0.3)
            bad.cancel()
        assert all(len(replies) == 2 for replies in await asyncio.gather(*good))
        with pytest.raises((KeyError, asyncio.CancelledError)):
            await bad

    asyncio.run(run())


def test_requests_of_nobodys_are_answered_while_members_are_away(batched: Make) -> None:
    model = batched()

    async def run() -> None:
        model.member()
        assert (await model.complete(ask(0))).completion_ids

    asyncio.run(run())


def test_a_task_of_a_member_asks_for_it(batched: Make) -> None:
    model = batched()

    async def run() -> list[ModelReply]:
        async with model.member(), asyncio.TaskGroup() as group:
            tasks = [group.create_task(model.complete(ask(number))) for number in range(3)]
        return [task.result() for task in tasks]

    assert all(reply.completion_ids for reply in asyncio.run(run()))


def test_members_of_one_loop_after_another(batched: Make) -> None:
    model = batched()
    assert rollouts(model, lambda *_: 0) == rollouts(model, lambda *_: 3)


def test_a_group_reads_its_prompt_once(batched: Make, passes: list[list[Feed]]) -> None:
    groups = [[SYSTEM, {"role": "user", "content": name * 60}] for name in ("one", "two")]
    sampling = [Sampling(temperature=1.0, seed=seed, max_tokens=2) for seed in range(8)]
    requests = [ask(1, messages=messages, sampling=chosen) for messages in groups for chosen in sampling]
    model = batched()
    prompts = [model.encode_prompt(request) for request in (requests[0], requests[8])]
    answers(model, requests)
    read = sum(len(feed.ids) for feeds in passes for feed in feeds)
    shared = next(at for at, (a, b) in enumerate(zip(*prompts, strict=False)) if a != b)
    assert read < len(prompts[0]) + len(prompts[1]) - shared + 16 * 12
    passes.clear()
    answers(model, requests)  # all of them are kept now
    assert sum(len(feed.ids) for feeds in passes for feed in feeds) < 16 * 12


def test_tokens_that_are_forced_are_read_together(batched: Make, passes: list[list[Feed]]) -> None:
    requests = [ask(1, sampling=Sampling(temperature=1.0, seed=seed, max_tokens=200)) for seed in range(4)]
    replies = answers(batched(max_calls=1), requests)
    assert len(passes) < max(reply.usage.completion_tokens for reply in replies) / 2


def test_a_bad_request_harms_no_other(batched: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [ask(number) for number in range(5)]
    bad = [
        ask(11, messages=[{"role": "robot", "content": "x"}]),
        ask(12, content="x" * 3000),
        ask(13, seconds=0.0),
        ask(14, sampling=Sampling(max_tokens=77)),
    ]
    draw = Speech.draw

    def breaks(self: Speech, logits: Any) -> int:
        if self._limits.max_tokens == 77 and len(self.said.ids) == 3:
            raise RuntimeError("no numbers")
        return draw(self, logits)

    right = alone(weights, good)
    monkeypatch.setattr(Speech, "draw", breaks)
    model = batched(rows=4)

    async def together() -> list[Any]:
        mixed = [*bad[:2], *good, *bad[2:]]
        return await asyncio.gather(*(model.complete(request) for request in mixed), return_exceptions=True)

    found = asyncio.run(together())
    assert_same(found[2:7], right)
    errors = [*found[:2], *found[7:]]
    assert all(isinstance(error, ModelError) and not error.retryable for error in errors)
    told = [error.message for error in errors]
    assert "message 0" in told[0]
    assert "the context of tiny holds 2048" in told[1]
    assert told[2].startswith("the deadline came while waiting for its round")
    assert told[3] == "the model tiny failed: RuntimeError: no numbers"


class Gate:
    """Holds passes back from the `after`-th on until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        self.passes = 0
        read = SlotReader.read

        def held(reader: SlotReader, feeds: list[Feed]) -> Any:
            self.passes += 1
            if self.passes > after:
                self.reached.set()
                assert self.open.wait(30)
            return read(reader, feeds)

        monkeypatch.setattr(SlotReader, "read", held)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 30)


@pytest.mark.parametrize("how", ["deadline", "cancelled"])
def test_a_row_that_is_given_up_leaves_and_the_others_go_on(
    batched: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    gate, model = Gate(monkeypatch, after=4), batched()
    long = Sampling(temperature=1.0, seed=1, max_tokens=1000)
    right = alone(weights, [ask(number) for number in (0, 2, 4)])

    async def run() -> None:
        late = asyncio.create_task(model.complete(ask(8, seconds=0.4 if how == "deadline" else 60, sampling=long)))
        others = [asyncio.create_task(model.complete(ask(number))) for number in (0, 2, 4)]
        await gate.wait()
        if how == "deadline":
            with pytest.raises(ModelError, match=r"the deadline came after \d tokens of the answer"):
                await late
        else:
            late.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late
        gate.open.set()
        assert_same(await asyncio.gather(*others), right)
        passes = gate.passes
        await model.complete(ask(0))
        assert gate.passes < passes + 20

    asyncio.run(run())


def test_a_pass_that_fails_fails_its_rows_and_the_next_round_is_right(
    batched: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = batched()
    requests = [ask(number) for number in range(3)]
    answers(model, requests)
    with monkeypatch.context() as patch:

        def broken(*_: Any, **__: Any) -> Any:
            raise RuntimeError("out of memory")

        patch.setattr("harnessctl.decode.passes.SlotLayer.update", broken)
        with pytest.raises(ModelError, match="the model tiny failed: RuntimeError: out of memory"):
            answers(model, requests)
    assert_same(answers(model, requests), alone(weights, requests))


def test_a_closed_model_says_so_to_who_waits_and_who_comes(batched: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, model = Gate(monkeypatch, after=0), batched()

    async def run() -> None:
        under_way = asyncio.create_task(model.complete(ask(0)))
        await gate.wait()
        waiting = asyncio.create_task(model.complete(ask(1)))
        await yields(5)
        await model.aclose()
        await model.aclose()
        gate.open.set()
        for task in (under_way, waiting, asyncio.create_task(model.complete(ask(2)))):
            with pytest.raises(ModelError, match="tiny has been closed"):
                await task

    asyncio.run(run())


def test_a_loop_that_ends_leaves_the_model_usable(
    batched: Make, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, model = Gate(monkeypatch, after=1), batched()

    async def leaves() -> None:
        asyncio.get_running_loop().create_task(model.complete(ask(8, seconds=math.inf)))
        await gate.wait()

    asyncio.run(leaves())
    gate.open.set()
    assert_same(answers(model, [ask(0)]), alone(weights, [ask(0)]))


def test_a_layer_that_attends_in_its_own_way_is_an_error(batched: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    model = batched()
    make = model._make_engine

    def plain() -> Any:
        engine = make()
        engine._reader._twin.config._attn_implementation = "sdpa"  # type: ignore[union-attr]
        return engine

    monkeypatch.setattr(model, "_make_engine", plain)
    with pytest.raises(ModelError, match="the model tiny failed"):
        answers(model, [ask(0)])
