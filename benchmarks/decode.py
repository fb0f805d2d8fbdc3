"""How fast the local model reads and speaks: python benchmarks/decode.py [--model smol] [--dtype auto] [--threads 2]

One process, one model, the median of `--repeats`, by the clock and by the process's CPU time (with one thread the
latter holds on a busy machine too). `kept`: an earlier request had the same system message and tools. A required call
is one of which the grammar forces most tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from typing import Any, NamedTuple

from harnessctl.decode.opening import open_local
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

TOPICS = ("price", "stock", "sizes", "delivery", "returns", "coupons", "orders", "materials", "reviews", "gifts")
RULES = " ".join(f"Rule {n}: when a viewer asks about {topic}, look it up before you answer, and say the answer once."
                 for n, topic in enumerate(TOPICS * 2, 1))  # fmt: skip


def tool(topic: str) -> dict[str, Any]:
    link = {"type": "integer", "minimum": 1, "maximum": 99, "description": "number of the link"}
    note = {"type": "string", "maxLength": 60, "description": "the viewer's own words"}
    parameters = {"type": "object", "properties": {"link": link, "note": note}, "required": ["link"]}
    return {
        "type": "function",
        "function": {
            "name": f"get_{topic}",
            "description": f"Looks up the {topic} of a product on offer.",
            "parameters": parameters,
        },
    }


TOOLS = [tool(topic) for topic in TOPICS]


def request(question: str, *, tokens: int, tools: list[dict[str, Any]], salt: str = "", **more: Any) -> ModelRequest:
    messages = [
        {"role": "system", "content": f"{salt}You host a live-stream shop. {RULES}"},
        {"role": "user", "content": question},
    ]
    return ModelRequest(
        messages=messages, tools=tools, sampling=Sampling(temperature=0.0, max_tokens=tokens), deadline=math.inf, **more
    )


class Cost(NamedTuple):
    """What one request took: seconds on the clock and of this process's CPU."""

    reply: ModelReply
    wall: float
    cpu: float


async def timed(model: Any, ask: ModelRequest) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    reply = await model.complete(ask)
    return Cost(reply, time.perf_counter() - wall, time.process_time() - cpu)


async def measure(arguments: argparse.Namespace) -> None:
    model = open_local(arguments.model, dtype=arguments.dtype, threads=arguments.threads)
    rows: dict[str, list[tuple[float, float]]] = {}

    def rate(name: str, tokens: int, cost: Cost) -> None:
        rows.setdefault(f"{name} (tokens/s)", []).append((tokens / cost.wall, tokens / cost.cpu))

    def seconds(name: str, cost: Cost) -> None:
        rows.setdefault(f"{name} (s)", []).append((cost.wall, cost.cpu))

    for repeat in range(arguments.repeats):
        # Another first word each time, and the tools come first where there are any: nothing that was kept fits.
        salt, many = f"{repeat}. ", arguments.tokens
        cold = await timed(model, request("hi", tokens=1, tools=[], salt=salt))
        rate("prefill, no tools, nothing kept", cold.reply.usage.prompt_tokens, cold)
        plain = await timed(model, request("hi", tokens=many, tools=[], salt=salt))
        rate("decode, no grammar", plain.reply.usage.completion_tokens, plain)
        tools = TOOLS[repeat:] + TOOLS[:repeat]
        first = await timed(model, request("How much is link 3?", tokens=1, tools=tools, salt=salt))
        seconds("first token, prompt with tools, nothing kept", first)
        kept = await timed(model, request("And link 4?", tokens=1, tools=tools, salt=salt))
        seconds("first token, prompt with tools kept", kept)
        free = await timed(model, request("And link 4?", tokens=many, tools=tools, salt=salt))
        rate("decode, grammar, free text", free.reply.usage.completion_tokens, free)
        call = await timed(model, request("Link 5?", tokens=200, tools=tools, salt=salt, tool_choice="required"))
        rate("a required call, prompt kept", call.reply.usage.completion_tokens, call)
        seconds("a required call, prompt kept", call)
    print(
        f"model {arguments.model}, dtype {arguments.dtype}, {arguments.threads} threads; prompt "
        f"{first.reply.usage.prompt_tokens} tokens with {len(TOOLS)} tools, {cold.reply.usage.prompt_tokens} without"
    )
    print(f"{'':56}{'clock':>10}{'CPU':>10}")
    for name, pairs in rows.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        print(f"{name:56}{wall:10.2f}{cpu:10.2f}")
    print(f"the call: {call.reply.tool_calls[0].name} {call.reply.tool_calls[0].arguments}")
    await model.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smol")
    parser.add_argument("--dtype", default="auto", choices=["auto", "float32", "bfloat16", "int8"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    asyncio.run(measure(parser.parse_args()))
