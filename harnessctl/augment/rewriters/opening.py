"""Opening: the rewriter that a name means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from harnessctl.augment.operator import Rewriter
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.errors import UsageError
from harnessctl.runtime.models.endpoint import Endpoint

RewriterName = Literal["rules", "llm"]
#: The names that `open_rewriter` knows.
REWRITERS: tuple[RewriterName, ...] = ("rules", "llm")


def open_rewriter(
    name: str,
    *,
    cache: Path | None = None,
    endpoint: Endpoint | None = None,
    model: str | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    k: int = 12,
    on_progress: Callable[[int, int], None] | None = None,
) -> Rewriter:
    """The rewriter of that name; UsageError for an unknown one or a missing setting.

    All else is of `llm`: `cache` is a folder; the model is behind `endpoint`, or behind that of `model`, `base_url` and
    `key_env`; `k` is how many wordings are asked for. It is an LlmRewriter: call its `prepare` first, once.
    """
    if name == "rules":
        return RulesRewriter()
    if name == "llm":
        from harnessctl.augment.rewriters.llm import LlmRewriter

        if endpoint is None and model is None:
            raise UsageError("rewriter=llm needs a model", hint="rewriter.model=NAME; its base_url may be local")
        if cache is None:
            raise UsageError("rewriter=llm needs a cache folder", hint="what a model wrote once must be there again")
        if endpoint is None:
            endpoint = Endpoint(model=model or "", base_url=base_url, key_env=key_env)
        return LlmRewriter(endpoint, cache=cache, k=k, on_progress=on_progress)
    raise UsageError(f"no rewriter is named {name!r}; allowed {', '.join(REWRITERS)}")
