"""Token paths, token by token: ids are what the model saw and said, and only what it said is masked in."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import orjson
from hypothesis import given
from hypothesis import strategies as st
from shop_agent import ToldHooks, ToldModel, answer, calls, comment, make_agent, says, shop_bundle

from harnessctl.records.trajectory import ModelCall, Trajectory
from harnessctl.runtime.protocols import ModelReply, ModelRequest
from harnessctl.runtime.scene import Verdict
from harnessctl.runtime.tokens import TokenPaths

END = 0


def encode(text: str) -> list[int]:
    return [b + 1 for b in text.encode()]


def ids_of(message: dict[str, Any]) -> list[int]:
    """A toy chat template: the message's bytes, then END."""
    text = f"{message['role']}:{message.get('content') or ''}"
    text += "".join(c["function"]["name"] + c["function"]["arguments"] for c in message.get("tool_calls", ()))
    return [*encode(text), END]


class TokenModel(ToldModel):
    """Works on ids: appends to the prefix, samples the ids of its answer in a form of its own."""

    def __init__(self, *answers: Any, rerender: bool = False) -> None:
        super().__init__(*answers)
        self.rerender = rerender
        self.prefixes: list[tuple[list[int] | None, int]] = []
        self.spoken: list[list[int]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.prefixes.append((request.prefix_ids, request.prefix_messages))
        prompt = [] if self.rerender or request.prefix_ids is None else list(request.prefix_ids)
        for message in request.messages[0 if self.rerender else request.prefix_messages :]:
            prompt += ids_of(message)
        reply = msgspec.structs.replace(await super().complete(request))
        sampled = [900, *encode(reply.content or orjson.dumps(reply.tool_calls[0].arguments).decode()), 901, END]
        self.spoken.append(sampled)
        reply.prompt_ids, reply.completion_ids = prompt, sampled
        reply.logprobs = [-0.5 - i / 100 for i in range(len(sampled))]
        return reply


LOOK = calls(("get_product", '{ "link_id":3 }'))


def run(model: TokenModel, *texts: str, hooks: ToldHooks | None = None, **state: Any) -> list[Trajectory]:
    agent = make_agent(shop_bundle(**state), model, hooks)

    async def main() -> list[Trajectory]:
        return [await agent.run(comment(t, id=t, session="s")) for t in texts]

    return asyncio.run(main())


def test_one_path_holds_exactly_what_was_seen_and_said() -> None:
    model = TokenModel(LOOK, says("<think>cheap</think>89."))
    (trajectory,) = run(model, "Price?")
    (path,) = trajectory.paths
    first, second = model.spoken
    messages = trajectory.messages
    start = ids_of(messages[0]) + ids_of(messages[1])
    tool = ids_of(messages[3])
    assert path.ids == start + first + tool + second
    assert path.mask == [0] * len(start) + [1] * len(first) + [0] * len(tool) + [1] * len(second)
    spoken = [-0.5 - i / 100 for i in range(100)]
    assert path.logprobs == ([0.0] * len(start) + spoken[: len(first)] + [0.0] * len(tool) + spoken[: len(second)])
    assert [(c.path, c.tokens) for c in trajectory.calls] == [
        (0, (len(start), len(start) + len(first))),
        (0, (len(path.ids) - len(second), len(path.ids))),
    ]
    assert model.prefixes == [(None, 0), (start + first, 3)]
    assert trajectory.warnings == []


def test_history_rendered_anew_starts_a_new_path() -> None:
    model = TokenModel(LOOK, says("89."), rerender=True)
    (trajectory,) = run(model, "Price?")
    assert len(trajectory.paths) == 2
    assert [c.path for c in trajectory.calls] == [0, 1]
    assert sum(trajectory.paths[0].mask) == len(model.spoken[0])
    assert sum(trajectory.paths[1].mask) == len(model.spoken[1])  # the first answer is context there
    assert trajectory.warnings == ["call 2: the model rendered history anew; a new token path begins"]


def test_the_next_turn_goes_on_from_the_ids_and_masks_only_its_own() -> None:
    model = TokenModel(LOOK, says("89."), says("Yes."))
    first, second = run(model, "a", "b", session_keep=["history"])
    left = first.paths[0].ids
    assert model.prefixes[2] == (left, 5)
    (path,) = second.paths
    assert path.ids == left + ids_of({"role": "user", "content": "b"}) + model.spoken[2]
    assert path.mask == [0] * (len(path.ids) - len(model.spoken[2])) + [1] * len(model.spoken[2])
    assert second.calls[0].tokens == (len(path.ids) - len(model.spoken[2]), len(path.ids))


def test_another_reply_than_the_models_ends_the_path() -> None:
    def shout(scene: Any) -> None:
        scene.reply = scene.reply.upper()

    model = TokenModel(says("yes"), says("no"))
    run(model, "a", "b", hooks=ToldHooks(stop=shout), session_keep=["history"])
    assert model.prefixes == [(None, 0), (None, 0)]


def test_a_rejected_reply_stays_in_the_path() -> None:
    left = [True]

    def again(scene: Any) -> Any:
        return Verdict(action="retry", hook="h", message="Shorter.") if left and left.pop() else None

    model = TokenModel(says("It is eighty-nine."), says("89."))
    (trajectory,) = run(model, "a", hooks=ToldHooks(stop=again))
    (path,) = trajectory.paths
    assert sum(path.mask) == len(model.spoken[0]) + len(model.spoken[1])


def test_without_ids_there_are_no_paths() -> None:
    trajectory, _ = answer(LOOK, says("89."))
    assert trajectory.paths == [] and trajectory.calls[0].path is None


def test_logprobs_that_do_not_fit_are_left_out_and_named() -> None:
    paths = TokenPaths()
    call = ModelCall(round=1, seen=1, started_s=0, ended_s=0)
    warnings = paths.record(ModelReply(prompt_ids=[1, 2], completion_ids=[3, 4], logprobs=[-1.0]), call, 2)
    assert warnings == ["call 1: 2 sampled ids and 1 logprobs; logprobs are left at 0"]
    assert paths.paths[0].logprobs == [0.0] * 4
    assert paths.record(ModelReply(prompt_ids=[1, 2, 3, 4], completion_ids=[5]), call, 4) == [
        "call 1: 1 sampled ids and none logprobs; logprobs are left at 0"
    ]


def test_a_logprob_that_is_no_number_would_make_a_record_that_nobody_reads() -> None:
    paths = TokenPaths()
    call = ModelCall(round=1, seen=1, started_s=0, ended_s=0)
    reply = ModelReply(prompt_ids=[1], completion_ids=[2, 3], logprobs=[-0.5, float("-inf")])
    assert paths.record(reply, call, 2) == ["call 1: logprobs that are no numbers; they are left at 0"]
    assert paths.paths[0].logprobs == [0.0, -0.5, 0.0]


def test_an_answer_without_ids_closes_the_path() -> None:
    paths = TokenPaths()
    call = ModelCall(round=1, seen=1, started_s=0, ended_s=0)
    paths.record(ModelReply(prompt_ids=[1], completion_ids=[2], logprobs=[0.0]), call, 2)
    paths.record(ModelReply(content="x"), call, 4)
    assert paths.prefix_ids is None
    paths.record(ModelReply(prompt_ids=[1, 2, 3], completion_ids=[4], logprobs=[0.0]), call, 6)
    assert [p.ids for p in paths.paths] == [[1, 2], [1, 2, 3, 4]]


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 9), max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=4)))
)
def test_the_three_lists_have_one_length_and_the_prefix_is_the_path(steps: list[tuple[list[int], list[int]]]) -> None:
    paths = TokenPaths()
    for number, (seen, said) in enumerate(steps):
        prompt = [*(paths.prefix_ids or []), *seen]
        call = ModelCall(round=number, seen=0, started_s=0, ended_s=0)
        paths.record(ModelReply(prompt_ids=prompt, completion_ids=said, logprobs=[-1.0] * len(said)), call, number)
        (path,) = paths.paths
        assert len(path.ids) == len(path.mask) == len(path.logprobs)
        assert path.ids == prompt + said == paths.prefix_ids
        assert call.tokens is not None and path.ids[slice(*call.tokens)] == said
    if steps:
        assert [t for t, m in zip(path.ids, path.mask, strict=True) if m] == [t for _, said in steps for t in said]
