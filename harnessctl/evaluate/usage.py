"""Usage: the calls, tokens and cost of a run, over every request and whatever came of it.

What always holds: a call whose tokens nobody counted is counted itself as unknown, and adds nothing: totals are lower
bounds where there are such calls, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harnessctl.policies import PriceConfig
from harnessctl.trajectory import Ended


class Usage(msgspec.Struct, kw_only=True):
    """Totals. `attempts` counts the tries of calls that were made again; `unknown` the calls whose tokens are not known;
    `cost` is in the currency of the prices, null without prices."""

    calls: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0
    cost: float | None = None

    def add(self, ended: Ended) -> None:
        """Count the calls of one request."""
        for call in ended.calls:
            self.calls += 1
            self.attempts += call.attempts
            self.prompt_tokens += call.usage.prompt_tokens
            self.completion_tokens += call.usage.completion_tokens
            self.unknown += not (call.usage.prompt_tokens or call.usage.completion_tokens)

    def priced(self, price: PriceConfig | None) -> Usage:
        """The same with its cost."""
        if price is None:
            return self
        cost = (self.prompt_tokens * price.prompt + self.completion_tokens * price.completion) / 1e6
        return msgspec.structs.replace(self, cost=cost)

    def told(self) -> str:
        """As a sentence's part: `12 calls, 3,400 + 210 tokens, cost 0.0123`."""
        again = self.attempts - self.calls
        parts = [
            f"{self.calls:,} calls" + (f" ({again:,} made again)" if again else ""),
            f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens read and written",
        ]
        if self.unknown:
            parts.append(f"{self.unknown:,} of the calls uncounted")
        if self.cost is not None:
            parts.append(f"cost {'at least ' if self.unknown else ''}{self.cost:.4f}")
        return ", ".join(parts)


def usage_of(requests: Iterable[Ended]) -> Usage:
    """The totals of some requests."""
    usage = Usage()
    for ended in requests:
        usage.add(ended)
    return usage
