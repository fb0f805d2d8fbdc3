"""What the runtime itself costs: one agent request in process, the model's answers made beforehand.

The request is `workload.py`'s: three model calls (load_skill, get_product_info_by_link_id, the reply), two tool runs, a
system prompt of 20,000 characters, ten tools. Timed side by side in one process, in turn, CPU per request:

    bare        a loop written by hand: parse the arguments, run the function, append the messages
    checked     the same with two JSON Schema checks (`jsonschema`, a validator made once per tool, as the peers'
                hand-written loop has them)
    checked-rs  the same with jsonschema-rs, which the runtime uses
    full        the hand-written loop of peers/aiohttp_full.py: two checks, ten hook decisions timed and kept, the record
                encoded
    ours        the bundle runtime: two checks, ten hook runs of four hooks, prompt, loop, trajectory encoded
    ours-bare   the same without hooks and without encoding

    python -m benchmarks.inprocess [--seconds 2] [--rounds 5] [--json] [--peers-python PYTHON]

With --peers-python (an interpreter that has `verifiers`) its ToolEnv is timed on the same request in its own process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# In place of this folder, in which `requests.py` would hide the library of that name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import workload  # noqa: E402 - found by the line above

FINAL = "The item with link 3 is the Aurora 2 desk lamp, 39.90 EUR, in stock; it ships within two days. " * 2
CALLS = [("load_skill", '{"skill": "item-qa"}'), ("get_product_info_by_link_id", '{"link_id": 3}')]

One = Callable[[], Awaitable[str]]
Messages = list[dict[str, Any]]


def message(step: int) -> dict[str, Any]:
    if step >= len(CALLS):
        return {"role": "assistant", "content": FINAL}
    name, arguments = CALLS[step]
    call = {"id": f"call_{step}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


MESSAGES = [message(step) for step in range(len(CALLS) + 1)]


def step_of(messages: Messages) -> int:
    return sum(m["role"] == "assistant" for m in messages)


def bare(check: Callable[[str, dict[str, Any]], str | None] | None = None) -> One:
    async def complete(messages: Messages) -> dict[str, Any]:
        return MESSAGES[step_of(messages)]

    async def one() -> str:
        messages = workload.first_messages()
        while True:
            answer = await complete(messages)
            messages.append(answer)
            if not answer.get("tool_calls"):
                return answer["content"]
            for call in answer["tool_calls"]:
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                fault = check(name, arguments) if check else None
                content = fault or await workload.TOOLS[name](**arguments)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})

    return one


def checked() -> One:
    import jsonschema

    validators = {n: jsonschema.Draft202012Validator(workload.parameters(t)) for n, t in workload.TOOLS.items()}

    def check(name: str, arguments: dict[str, Any]) -> str | None:
        error = next(validators[name].iter_errors(arguments), None)
        return str(error) if error else None

    return bare(check)


def checked_rs() -> One:
    import jsonschema_rs

    validators = {n: jsonschema_rs.validator_for(workload.parameters(t)) for n, t in workload.TOOLS.items()}
    return bare(lambda name, arguments: None if validators[name].is_valid(arguments) else "invalid")


def full() -> One:
    from benchmarks.peers.aiohttp_full import Run

    usage = {"prompt_tokens": 7000, "completion_tokens": 30}

    async def ask(messages: Messages) -> dict[str, Any]:
        return {"message": MESSAGES[step_of(messages)], "finish_reason": "stop", "usage": usage, "ttft_s": None}

    async def one() -> str:
        run = Run(1)
        while True:
            answer = await run.ask(ask)
            if not answer.get("tool_calls"):
                run.finish(answer["content"])
                return answer["content"]
            for call in answer["tool_calls"]:
                await run.call(call)

    return one


def ours(hooks: bool = True, encode: bool = True) -> One:
    import msgspec

    from benchmarks.peers.bundle_runtime import shop_bundle
    from harnessctl.records.comment import CommentInput
    from harnessctl.records.trajectory import Usage
    from harnessctl.runtime.agent import Agent
    from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall
    from harnessctl.trajectory import encode_trajectory

    usage = Usage(prompt_tokens=7000, completion_tokens=30)
    replies = [
        ModelReply(tool_calls=[ModelToolCall(f"call_{step}", *call)], finish_reason="tool_calls", usage=usage)
        for step, call in enumerate(CALLS)
    ] + [ModelReply(content=FINAL, finish_reason="stop", usage=usage)]

    class Made:
        name = "made"
        template: str | None = None

        async def complete(self, request: ModelRequest) -> ModelReply:
            return replies[step_of(request.messages)]

        async def aclose(self) -> None:
            return None

    bundle = shop_bundle()
    if not hooks:
        bundle.state = msgspec.structs.replace(bundle.state, hooks=[])
    agent: Agent | None = None

    async def one() -> str:
        nonlocal agent
        if agent is None:
            agent = await Agent.open(bundle, Made(), env={})
        trajectory = await agent.run(CommentInput(id="r1", text=workload.QUESTION))
        if encode:
            encode_trajectory(trajectory)
        assert trajectory.stop == "replied", trajectory.error
        return trajectory.reply

    return one


RUNTIMES: dict[str, Callable[[], One]] = {
    "bare": bare,
    "checked": checked,
    "checked-rs": checked_rs,
    "full": full,
    "ours": ours,
    "ours-bare": lambda: ours(hooks=False, encode=False),
}


def verifiers_tool_env() -> One:
    """verifiers' ToolEnv (0.1.14) over a client that answers at once; run by an interpreter that has it."""
    import verifiers as vf
    from datasets import Dataset
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion
    from verifiers.clients.openai_chat_completions_client import OpenAIChatCompletionsClient

    def completion(step: int) -> ChatCompletion:
        finish = "tool_calls" if step < len(CALLS) else "stop"
        usage = {"prompt_tokens": 7000, "completion_tokens": 30, "total_tokens": 7030}
        choice = {"index": 0, "finish_reason": finish, "message": MESSAGES[step]}
        whole = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return ChatCompletion.model_validate(whole | {"usage": usage})

    completions = [completion(step) for step in range(len(MESSAGES))]

    class Made(OpenAIChatCompletionsClient):
        async def get_native_response(self, prompt: Any, *args: Any, **kwargs: Any) -> ChatCompletion:
            return completions[step_of(prompt)]

    def reward(completion: Any) -> float:
        return 1.0

    client = Made(AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="x"))
    dataset = Dataset.from_list([{"prompt": workload.first_messages(), "answer": ""}])
    env = vf.ToolEnv(
        tools=list(workload.TOOLS.values()), max_turns=4, dataset=dataset, rubric=vf.Rubric(funcs=[reward])
    )

    async def one() -> str:
        given = {"prompt": workload.first_messages(), "example_id": 0, "answer": ""}
        output = await env.run_rollout(given, client, "m", {})
        return str(output["completion"])

    return one


async def cpu_ms(one: One, seconds: float) -> float:
    """CPU milliseconds per request, over at least `seconds` of wall time."""
    assert workload.EXPECTED in await one()
    gc.collect()
    count, end, begun = 0, time.perf_counter() + seconds, time.process_time()
    while time.perf_counter() < end:
        for _ in range(20):
            await one()
        count += 20
    return 1e3 * (time.process_time() - begun) / count


async def measure(runtimes: dict[str, One], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Each runtime in turn, `rounds` times, so that drift of the machine hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in runtimes}
    for _ in range(rounds):
        for name, one in runtimes.items():
            found[name].append(await cpu_ms(one, seconds / rounds))
    return found


def peer(python: str, seconds: float, rounds: int) -> list[float] | None:
    command = [python, str(Path(__file__).resolve()), "--worker", "--seconds", str(seconds), "--rounds", str(rounds)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "x"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        print(f"verifiers cannot be timed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="per runtime")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peers-python", help="an interpreter that has verifiers")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        times = asyncio.run(measure({"verifiers": verifiers_tool_env()}, options.seconds, options.rounds))["verifiers"]
        print(json.dumps(times))
        return
    found = asyncio.run(measure({n: make() for n, make in RUNTIMES.items()}, options.seconds, options.rounds))
    if options.peers_python and (times := peer(options.peers_python, options.seconds, options.rounds)):
        found["verifiers"] = times
    median = {name: statistics.median(times) for name, times in found.items()}
    if options.json:
        print(json.dumps({"cpu_ms": found, "ratio_to_checked": {n: m / median["checked"] for n, m in median.items()}}))
        return
    print(f"{'runtime':12} {'CPU ms':>8} {'min':>8} {'max':>8} {'x checked':>10} {'x ours':>8}")
    for name, times in found.items():
        ratios = f"{median[name] / median['checked']:10.2f} {median[name] / median['ours']:8.2f}"
        print(f"{name:12} {median[name]:8.4f} {min(times):8.4f} {max(times):8.4f} {ratios}")


if __name__ == "__main__":
    main()
