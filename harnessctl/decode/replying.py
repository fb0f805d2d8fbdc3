"""Replying: what a request asks of sampling, and how what was said becomes a reply. Needs no torch: whoever computes the
tokens, here or on a server, answers through this.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harnessctl.decode.output import parse_output
from harnessctl.records.trajectory import Usage
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall, Sampling

#: What holds where a request leaves the choice to the model: greedy, so that an answer can be had again.
DEFAULTS = Sampling(temperature=0.0, top_p=1.0, max_tokens=512)


class Said(msgspec.Struct):
    """What has been said so far. `finish` is null while the reply goes on; `text` leaves a stop string out."""

    ids: list[int] = []
    logprobs: list[float] = []
    text: str = ""
    finish: Literal["stop", "length"] | None = None
    first_token_at: float | None = None


def whole_sampling(asked: Sampling, defaults: Sampling) -> Sampling:
    """The request's sampling, with `defaults` where it leaves the choice."""
    return Sampling(
        temperature=defaults.temperature if asked.temperature is None else asked.temperature,
        top_p=defaults.top_p if asked.top_p is None else asked.top_p,
        max_tokens=defaults.max_tokens if asked.max_tokens is None else asked.max_tokens,
        seed=defaults.seed if asked.seed is None else asked.seed,
        stop=asked.stop or defaults.stop,
    )


def cut_at_stop(text: str, stop: list[str]) -> str | None:
    """`text` up to the first stop string in it; null where it has none."""
    found = [at for string in stop if (at := text.find(string)) >= 0]
    return text[: min(found)] if found else None


def make_reply(request: ModelRequest, prompt: list[int], said: Said, *, started: float) -> ModelReply:
    """The reply that was said after `prompt`. `started` is when the model was asked, on time.monotonic()."""
    output = parse_output(
        said.text, calls=bool(request.tools) and request.tool_choice != "none", is_cut=said.finish == "length"
    )
    # Unique within the conversation, and the same when it is had again.
    turn = len(request.messages)
    calls = [
        ModelToolCall(id=f"call_{turn}_{index}", name=call.name, arguments=call.arguments)
        for index, call in enumerate(output.calls)
    ]
    return ModelReply(
        content=output.content,
        tool_calls=calls,
        reasoning=output.reasoning,
        finish_reason="tool_calls" if calls and said.finish == "stop" else said.finish,
        usage=Usage(prompt_tokens=len(prompt), completion_tokens=len(said.ids)),
        ttft_s=None if said.first_token_at is None else said.first_token_at - started,
        prompt_ids=prompt,
        completion_ids=said.ids,
        logprobs=said.logprobs,
    )
