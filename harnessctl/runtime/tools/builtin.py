"""Built-in tools: what a harness may use without code of its own. (`load_skill` belongs to the agent loop.)"""

from __future__ import annotations

from typing import Any

from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.tools.outcome import Failure

DEFAULT_TOP_K = 3
MAX_TOP_K = 50


class SearchFaq:
    """`search_faq`: full-text search in the world's FAQ.

    Parameters: `query`; `top_k`, optional; `filters`, optional, {column: value}. Every other argument is a filter too.
    """

    def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        """The answers found, best first; a list, empty when there is none."""
        if ctx.world is None:
            raise Failure("error", "there is no world to search in", retryable=False)
        where = {key: value for key, value in args.items() if key not in ("query", "top_k", "filters")}
        where |= args.get("filters") or {}
        top_k = args.get("top_k") or DEFAULT_TOP_K
        return ctx.world.search_faq(
            args["query"],
            where={key: value for key, value in where.items() if value is not None},
            top_k=min(max(int(top_k), 1), MAX_TOP_K),
        )
