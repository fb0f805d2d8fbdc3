"""How fast the local model reads and speaks: python benchmarks/decode.py [--model smol] [--dtype auto] [--threads 2]

Every line is one process, one model, the median of `--repeats`. Prefill is the reading of a prompt that nothing is kept
of; `kept` is the same prompt after another request with the same system message and tools. Decode is counted from the
first token to the last. `call` is a required tool call, of which the grammar forces most tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from typing import Any

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


async def timed(model: Any, ask: ModelRequest) -> tuple[ModelReply, float]:
    started = time.perf_counter()
    reply = await model.complete(ask)
    return reply, time.perf_counter() - started


def decode_rate(reply: ModelReply, took: float) -> float:
    assert reply.ttft_s is not None
    return (reply.usage.completion_tokens - 1) / (took - reply.ttft_s)


async def measure(arguments: argparse.Namespace) -> None:
    model = open_local(arguments.model, dtype=arguments.dtype, threads=arguments.threads)
    rates: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        rates.setdefault(name, []).append(value)

    for repeat in range(arguments.repeats):
        # Another first word, and the tools left out: nothing that was kept fits.
        cold, took = await timed(model, request("hi", tokens=arguments.tokens, tools=[], salt=f"{repeat}. "))
        note("prefill, nothing kept (tokens/s)", cold.usage.prompt_tokens / cold.ttft_s)
        note("decode, no grammar (tokens/s)", decode_rate(cold, took))
        first, took = await timed(
            model, request("How much is link 3?", tokens=arguments.tokens, tools=TOOLS, salt=f"{repeat}. ")
        )
        note("first token, system prompt and tools new (s)", first.ttft_s)
        note("decode, grammar, free text (tokens/s)", decode_rate(first, took))
        kept, took = await timed(
            model, request("And link 4?", tokens=arguments.tokens, tools=TOOLS, salt=f"{repeat}. ")
        )
        note("first token, system prompt and tools kept (s)", kept.ttft_s)
        call, took = await timed(
            model, request("And link 5?", tokens=200, tools=TOOLS, salt=f"{repeat}. ", tool_choice="required")
        )
        note("a required call, kept prompt (tokens/s)", call.usage.completion_tokens / took)
        note("a required call, kept prompt (s)", took)
    print(f"model {arguments.model}, dtype {arguments.dtype}, {arguments.threads} threads, "
          f"prompt {first.usage.prompt_tokens} tokens with {len(TOOLS)} tools, {cold.usage.prompt_tokens} without")  # fmt: skip
    for name, values in rates.items():
        print(f"{name:52} {statistics.median(values):8.2f}")
    print(f"the call: {call.tool_calls[0].name} {call.tool_calls[0].arguments}")
    await model.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smol")
    parser.add_argument("--dtype", default="auto", choices=["auto", "float32", "bfloat16", "int8"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    asyncio.run(measure(parser.parse_args()))
