"""langgraph: the ReAct agent that langchain builds on it, with ChatOpenAI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from benchmarks import workload


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    model = ChatOpenAI(model="mock", base_url=base_url, api_key="x", max_retries=0)
    tools = [tool(function, parse_docstring=True) for function in workload.TOOLS.values()]
    graph = create_agent(model, tools, system_prompt=workload.SYSTEM)

    async def request() -> str:
        state = await graph.ainvoke({"messages": [{"role": "user", "content": workload.QUESTION}]})
        return state["messages"][-1].content

    return request
