"""Measure: general skill by real decoding, as any stage may ask before and after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

from harnessctl.data.general import GeneralItem, is_right
from harnessctl.decode.batched import BatchedModel
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from harnessctl.train.base.exactness import share
from harnessctl.train.base.measures import measures
from harnessctl.train.policy import Policy

#: Answers are short; one that is longer is wrong already.
MAX_TOKENS = 192
ROWS = 16


def measure(policy: Policy, seed: int, n: int, *, tasks: Iterable[str] | None = None) -> dict[str, float]:
    """The share of right answers by measure (see `measures`), `n` dialogues each, decoded greedily under the grammar that
    a served policy is held to. What stands before an answer are the right ones. Not to be called from an event loop."""
    return asyncio.run(_measured(policy, seed, n, tasks))


async def _measured(policy: Policy, seed: int, n: int, tasks: Iterable[str] | None) -> dict[str, float]:
    model = BatchedModel(policy.weights(), name=policy.name, template=policy.template, rows=ROWS)
    try:
        return {name: share(await answered(model, one.items(seed, n))) for name, one in sorted(measures(tasks).items())}
    finally:
        await model.aclose()


async def answered(model: Any, items: Sequence[GeneralItem]) -> list[bool]:
    """Whether the model answers right, by item and turn. The dialogues are asked about at once, the turns of each in
    turn, so that what a turn shares with the one before is not read again."""
    members = [model.member() for _ in items]

    async def dialogue(number: int, item: GeneralItem, member: Any) -> list[bool]:
        async with member:
            turns = range(len(item.turns))
            return [is_right(item, turn, await _answer(model, item, turn, f"{number:06}")) for turn in turns]

    found = await asyncio.gather(*map(dialogue, range(len(items)), items, members))
    return [answer for answers in found for answer in answers]


async def _answer(model: Any, item: GeneralItem, turn: int, request_id: str) -> dict[str, Any]:
    reply: ModelReply = await model.complete(
        ModelRequest(
            messages=item.before(turn),
            tools=item.tools,
            sampling=Sampling(temperature=0.0, max_tokens=MAX_TOKENS),
            deadline=time.monotonic() + 3600.0,
            request_id=request_id,
        )
    )
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in reply.tool_calls]
    return {"role": "assistant", "content": reply.content, "tool_calls": calls}
