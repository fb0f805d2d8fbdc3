"""Whatever a model answers and hooks decide: what always holds of the record, and of the next turn."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from shop_agent import (
    GET_PRODUCT,
    LOAD_SKILL,
    PLACE_ORDER,
    REFUSE,
    ToldHooks,
    ToldModel,
    calls,
    comment,
    make_agent,
    says,
    shop_bundle,
)

from harnessctl.errors import ModelError
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.protocols import ModelReply, ModelRequest
from harnessctl.runtime.scene import Scene, Verdict
from harnessctl.trajectory import encode_trajectory

LOOK = ("get_product", {"link_id": 3})
ANSWERS: list[Any] = [
    says("It is 89."),
    says(""),
    says("<think>hm</think>It is 89."),
    calls(LOOK),
    calls(LOOK, ("get_product", {"link_id": 4}), ("nothing", {})),
    calls(("place_order", {"link_id": 3}), LOOK),
    calls(("load_skill", {"skill": "item-qa"})),
    calls(("get_product", "{"), ("get_product", {"link_id": "x"})),
    calls(("refuse", {"topic": "x"})),
    ModelError("429", retryable=False),
]
EVENTS = ["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop"]
#: What a hook may do at each of its events: mostly nothing.
DECISIONS = [*["pass"] * 6, "block", "retry", "stop_loop", "fallback", "rewrite"]


class Random(ToldModel):
    """Answers at random, on ids: a message is its JSON, byte by byte, and its end."""

    def __init__(self, choose: random.Random) -> None:
        super().__init__()
        self.choose = choose
        self.saw: list[list[int]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        answer = self.choose.choice(ANSWERS)
        if isinstance(answer, ModelError):
            raise answer
        prompt = list(request.prefix_ids or [])
        for message in request.messages[request.prefix_messages :]:
            prompt += [*orjson.dumps(message), 1000]
        answer = msgspec.structs.replace(answer)
        answer.prompt_ids = prompt
        answer.completion_ids = [2000 + self.choose.randrange(9), 1000]
        answer.logprobs = [-0.5, -0.1]
        self.saw.append(prompt + answer.completion_ids)
        return answer


def random_hooks(choose: random.Random) -> ToldHooks:
    def decide(event: str) -> Any:
        def hook(scene: Scene) -> Verdict | None:
            decision = choose.choice(DECISIONS)
            if decision == "rewrite":
                target = {"input": "message", "post_model": "output", "stop": "reply", "post_tool": "result"}.get(event)
                if target is not None:
                    setattr(scene, target, "rewritten")
                return None
            if decision == "pass":
                return None
            role: Any = choose.choice(["tool", "user", "system"])
            return Verdict(action=decision, hook="h", message="Told.", role=role, reply="Ask the shop.")

        return hook

    return ToldHooks(**{event: decide(event) for event in EVENTS if choose.random() < 0.6})


def check(trajectory: Trajectory) -> None:
    assert msgspec.convert(orjson.loads(encode_trajectory(trajectory)), Trajectory) == trajectory
    asked: list[str] = []
    for message in trajectory.messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == asked.pop(0)
        else:
            assert asked == []
            asked = [call["id"] for call in message.get("tool_calls", ())]
    assert asked == []
    made = Counter(call.id for call in trajectory.tools)
    assert sum(made.values()) == sum(
        len(m.get("tool_calls", ()))
        for call in trajectory.calls
        for m in trajectory.messages[call.seen : call.seen + 1]
    )
    assert bool(trajectory.reply) or trajectory.route == "silent"
    assert not (trajectory.stop == "replied" and not trajectory.reply)
    for path in trajectory.paths:
        assert len(path.ids) == len(path.mask) == len(path.logprobs)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9))
def test_any_course(seed: int) -> None:
    choose = random.Random(seed)
    model = Random(choose)
    state: dict[str, Any] = {
        "tools": [LOAD_SKILL, GET_PRODUCT, PLACE_ORDER, REFUSE],
        "session_keep": choose.choice([[], ["calls", "skills", "history"], ["history"]]),
        "require_skill": choose.choice(["none", "reply"]),
    }
    agent = make_agent(shop_bundle(**state), model, random_hooks(choose))

    async def main() -> list[Trajectory]:
        return [await agent.run(comment(f"turn {n}", id=str(n), session="s")) for n in range(3)]

    saw = iter(model.saw)
    for trajectory in asyncio.run(main()):
        check(trajectory)
        for call in trajectory.calls:
            if call.tokens is not None and call.path is not None:
                # What the path holds up to the call is what the model saw and said in it, token by token.
                ids = trajectory.paths[call.path].ids[: call.tokens[1]]
                assert ids == next(saw)
                assert trajectory.paths[call.path].mask[call.tokens[0] : call.tokens[1]] == [1, 1]
        for path in trajectory.paths:
            own = sum(1 for c in trajectory.calls if c.tokens and trajectory.paths[c.path or 0] is path)
            assert sum(path.mask) == 2 * own
