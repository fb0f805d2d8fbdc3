"""`aiohttp_full` with a deadline for the request and a time-out for each tool, which the bundle runtime has too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.peers import aiohttp_full

DEADLINE_S, TOOL_TIMEOUT_S = 15, 5


class Run(aiohttp_full.Run):
    async def tool(self, name: str, arguments: dict[str, Any]) -> str:
        async with asyncio.timeout(TOOL_TIMEOUT_S):
            return await super().tool(name, arguments)


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    request = await aiohttp_full.setup(base_url, stream=stream, record=record, kind=Run)

    async def request_in_time() -> str:
        async with asyncio.timeout(DEADLINE_S):
            return await request()

    return request_in_time
