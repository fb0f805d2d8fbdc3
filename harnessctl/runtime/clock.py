"""Clock: where the runtime takes time from, so that tests neither wait nor depend on the day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time of day in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True, frozen=True)
class Clock:
    """`monotonic` gives seconds, as time.monotonic does; `now` is UTC; `sleep` waits some seconds; `perf` (seconds) is
    what hooks are timed with."""

    monotonic: Callable[[], float] = time.monotonic
    perf: Callable[[], float] = time.perf_counter
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
