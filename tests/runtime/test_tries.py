"""Other tries after a model's failure, the deadline, cancellation."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shop_agent import (
    HangingModel,
    StoppedClock,
    ToldHooks,
    ToldModel,
    answer,
    calls,
    comment,
    make_agent,
    says,
    shop_bundle,
    tool,
)

from harnessctl.errors import ModelError
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.model_call import LONGEST_WAIT_S, wait_before
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from harnessctl.runtime.scene import Scene, Verdict

BUSY = ModelError("503 Service Unavailable", retryable=True)
SAY = says("Hi.")


def test_a_failure_that_may_pass_is_tried_again_with_back_off() -> None:
    clock = StoppedClock()
    trajectory, model = answer(BUSY, BUSY, SAY, agent={"clock": clock.clock(), "seed": 5})
    assert trajectory.stop == "replied" and len(model.requests) == 3
    assert trajectory.calls[0].attempts == 3 and trajectory.calls[0].error is None
    first, second = clock.slept
    assert 0.25 <= first <= 0.5 and 0.5 <= second <= 1.0
    again = StoppedClock()
    answer(BUSY, BUSY, SAY, agent={"clock": again.clock(), "seed": 5})
    assert again.slept == clock.slept  # the same seed and request, the same waits
    other = StoppedClock()
    answer(BUSY, BUSY, SAY, request=comment(id="r2"), agent={"clock": other.clock(), "seed": 5})
    assert other.slept != clock.slept


def test_tries_are_counted_and_the_last_failure_is_told() -> None:
    clock = StoppedClock()
    trajectory, model = answer(BUSY, BUSY, BUSY, agent={"clock": clock.clock()})
    assert (trajectory.stop, trajectory.error) == ("model_error", "503 Service Unavailable")
    assert len(model.requests) == 3 and trajectory.calls[0].attempts == 3


def test_the_wait_that_the_endpoint_asks_for_is_kept() -> None:
    clock = StoppedClock()
    answer(ModelError("429", retryable=True, retry_after=3.5), SAY, agent={"clock": clock.clock()})
    assert clock.slept == [3.5]


def test_no_wait_reaches_past_the_deadline() -> None:
    clock = StoppedClock()
    late = ModelError("429", retryable=True, retry_after=60)
    trajectory, model = answer(late, SAY, agent={"clock": clock.clock()})
    assert trajectory.stop == "deadline" and clock.slept == [] and len(model.requests) == 1
    assert trajectory.error == "429; another try would come after the deadline"


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_waits_grow_and_are_bounded(attempt: int, jitter: float) -> None:
    assert 0.25 <= wait_before(attempt, None, jitter) <= LONGEST_WAIT_S


def test_the_deadline_is_carried_and_looked_at_before_each_call() -> None:
    clock = StoppedClock()

    def slow(request: ModelRequest) -> ModelReply:
        assert request.deadline == 1015.0
        clock.advance(20)
        return calls(("get_product", {"link_id": 3}))

    trajectory, model = answer(slow, SAY, agent={"clock": clock.clock()})
    assert trajectory.stop == "deadline" and len(model.requests) == 1
    assert trajectory.tools[0].status == "timeout"


def test_a_model_that_fails_at_the_deadline_is_a_deadline() -> None:
    clock = StoppedClock()

    def late(request: ModelRequest) -> ModelReply:
        clock.advance(15)
        raise ModelError("no answer by the deadline", retryable=True)

    assert answer(late, agent={"clock": clock.clock()})[0].stop == "deadline"


def test_a_model_that_never_answers_is_cut_off_at_the_deadline() -> None:
    agent = make_agent(shop_bundle(limits={"deadline_s": 0.02}), HangingModel())
    trajectory = asyncio.run(agent.run(comment()))
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("deadline", "", "silent")
    assert trajectory.error == "deadline_s of 0.02 s had passed"
    assert trajectory.calls[0].error == "cut off" and trajectory.calls[0].ended_s >= 0.02


def test_end_hooks_run_after_the_deadline() -> None:
    hooks = ToldHooks(end=lambda scene: None)
    agent = make_agent(shop_bundle(limits={"deadline_s": 0.01}), HangingModel(), hooks)
    assert [d.event for d in asyncio.run(agent.run(comment())).hooks] == ["end"]


def test_a_cancelled_request_leaves_its_record_and_cancels_its_task() -> None:
    records: list[Trajectory] = []

    async def main() -> None:
        hang = tool("hang", {}, timeout_s=1000.0)
        agent = make_agent(shop_bundle(tools=[hang]), ToldModel(calls(("hang", {}))))
        task = asyncio.create_task(agent.run(comment(), on_cancelled=records.append))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (record,) = records
    assert (record.stop, record.route) == ("cancelled", "silent")
    assert (record.tools[0].name, record.tools[0].status, record.tools[0].error) == ("hang", "timeout", "cut off")


def test_a_fault_of_the_runtime_itself_is_a_record_too(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ToldHooks):
        async def run(self, event: str, scene: Scene) -> Verdict:
            raise ZeroDivisionError("hooks never raise, but this one does")

    trajectory, _ = answer(SAY, hooks=Broken(stop=lambda scene: None))
    assert trajectory.stop == "model_error"
    assert trajectory.error == "fault in the runtime: ZeroDivisionError: hooks never raise, but this one does"
    assert "request r1 failed inside the runtime" in caplog.text


def test_a_seed_is_made_each_requests_and_each_calls_own() -> None:
    sampling = {"sampling": Sampling(seed=1, temperature=0.7)}
    look = calls(("get_product", {"link_id": 3}))
    trajectory, model = answer(look, SAY, agent=sampling)
    seeds = [request.sampling.seed for request in model.requests]
    assert len(set(seeds)) == 2
    _, again = answer(look, SAY, agent=sampling)
    assert [request.sampling.seed for request in again.requests] == seeds
    _, other = answer(look, SAY, request=comment(id="r2"), agent=sampling)
    assert not set(seeds) & {request.sampling.seed for request in other.requests}
    assert trajectory.sampling == {"temperature": 0.7, "seed": 1}
