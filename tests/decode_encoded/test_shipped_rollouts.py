"""For each shipped template and harness: the ids of a rollout are, at every turn, those of the conversation rendered from
nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import harnessctl
from harnessctl.bundle.files import Bundle
from harnessctl.decode.grammar import Grammars
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.runtime.loop import loop_state
from harnessctl.runtime.surface import SurfaceView
from tests.decode_encoded.rollouts import Played, play
from tests.decode_encoded.stall import LOAD, calls, look, says, stall, talk

#: Every chat template that is shipped: those that render an assistant's message.
TEMPLATES = sorted(
    path for path in Path(harnessctl.__file__).parent.rglob("*.jinja") if "<|im_start|>" in path.read_text("utf-8")
)


def check(played: Played, template: ChatTemplate, codec: TokenCodec) -> None:
    """One path, whose ids at every turn are those of the messages rendered anew."""
    trajectory, turns = played
    encoder = PromptEncoder(template, codec)
    (path,) = trajectory.paths
    assert len(path.ids) == len(path.mask) == len(path.logprobs)
    spoken = 0
    for call, (request, reply) in zip(trajectory.calls, turns, strict=True):
        anew = encoder.prompt(msgspec.structs.replace(request, prefix_ids=None, prefix_messages=0))
        assert call.path == 0 and call.tokens is not None
        start, end = call.tokens
        assert path.ids[:start] == anew
        assert path.ids[start:end] == reply.completion_ids
        assert path.mask[start:end] == [1] * (end - start)
        spoken += end - start
    assert sum(path.mask) == spoken
    assert path.ids[-1] == codec.end_id


@pytest.fixture(scope="session")
def rolled(
    repository: Path, shipped: Callable[[str | None], Bundle], codec: TokenCodec, tagged_codec: TokenCodec
) -> Callable[[str | None, Path, str], list[Played]]:
    """A few items of a harness, played once for each template and tokenizer."""
    made: dict[tuple[str | None, Path, str], list[Played]] = {}

    def roll(harness: str | None, source: Path, tags: str) -> list[Played]:
        key = (harness, source, tags)
        if key not in made:
            template = ChatTemplate(source.read_text("utf-8"))
            tokens = tagged_codec if tags == "tagged" else codec
            n = 2 if harness is None else 10
            made[key] = asyncio.run(play(repository, shipped(harness), template, tokens, n=n))
        return made[key]

    return roll


Roll = Callable[[str | None, Path, str], list[Played]]


@pytest.mark.parametrize("source", TEMPLATES, ids=lambda path: path.name)
@pytest.mark.parametrize("harness", ["mini", None])
@pytest.mark.parametrize("tags", ["plain", "tagged"])
def test_rollouts_of_the_oracle(
    rolled: Roll, codec: TokenCodec, tagged_codec: TokenCodec, source: Path, harness: str | None, tags: str
) -> None:
    template = ChatTemplate(source.read_text("utf-8"))
    for played in rolled(harness, source, tags):
        check(played, template, tagged_codec if tags == "tagged" else codec)
        assert played.trajectory.stop == "replied"
        assert played.trajectory.template == template.digest


def test_what_hooks_send_back_stands_in_the_path(
    repository: Path, shipped: Callable[[str | None], Bundle], codec: TokenCodec
) -> None:
    for played in asyncio.run(play(repository, shipped("mini"), ChatTemplate(), codec, n=4, flaw="over-long")):
        check(played, ChatTemplate(), codec)
        assert any(hook.decision == "retry" for hook in played.trajectory.hooks)


@pytest.mark.parametrize("harness", ["mini", None])
def test_the_grammar_lets_the_policy_say_what_the_teacher_said(
    rolled: Roll, codec: TokenCodec, harness: str | None
) -> None:
    grammars = Grammars(codec.source, vocab_size=300, ends=[codec.end_id], reasoning=False, max_calls=4)
    for source in TEMPLATES:
        for played in rolled(harness, source, "plain"):
            for request, reply in played.turns:
                constraint = grammars.constraint(request.tools)
                assert constraint is not None
                constraint.accept((reply.completion_ids or [])[:-1])


def test_earlier_turns_of_a_session_are_context(codec: TokenCodec) -> None:
    turn = [calls(LOAD, look(), thought="a skill"), says("It is 83.", "read the result")]
    trajectories = talk(codec, turn, turn, turn, session="s")
    assert [t.stop for t in trajectories] == ["replied"] * 3, [t.error for t in trajectories]
    encoder = PromptEncoder(ChatTemplate(), codec)
    tools = SurfaceView(loop_state(stall(), "harness")).tools
    for earlier, later in pairwise(trajectories):
        (before,), (after,) = earlier.paths, later.paths
        assert after.ids[: len(before.ids)] == before.ids
        assert not any(after.mask[: len(before.ids)])
        assert sum(after.mask) == sum(end - start for start, end in (call.tokens or (0, 0) for call in later.calls))
        for call in later.calls:
            assert call.tokens is not None
            assert encoder.extend([], later.messages[: call.seen], tools) == after.ids[: call.tokens[0]]
