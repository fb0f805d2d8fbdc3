"""openai-agents: an Agent of chat completions, its tracing off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks import workload


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    set_tracing_disabled(True)
    agent = Agent(
        name="shop",
        instructions=workload.SYSTEM,
        tools=[function_tool(tool) for tool in workload.TOOLS.values()],
        model=OpenAIChatCompletionsModel("mock", AsyncOpenAI(base_url=base_url, api_key="x")),
    )

    async def request() -> str:
        return (await Runner.run(agent, workload.QUESTION)).final_output

    return request
