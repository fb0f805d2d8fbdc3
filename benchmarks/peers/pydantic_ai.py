"""pydantic-ai: an Agent of an OpenAI chat model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks import workload


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    model = OpenAIChatModel("mock", provider=OpenAIProvider(base_url=base_url, api_key="x"))
    agent = Agent(model, system_prompt=workload.SYSTEM, tools=list(workload.TOOLS.values()))

    async def request() -> str:
        return (await agent.run(workload.QUESTION)).output

    return request
