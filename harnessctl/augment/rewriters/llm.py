"""LLM: wordings by a model behind an OpenAI-compatible endpoint, kept in a cache, held to law h.

What always holds: `wordings` reads the cache alone, so that the same seed and cache give the same bytes; what a model
wrote passes the checks of law h or is refused and counted; a text without an accepted wording is given those of `rules`
and counted. No key is in a message, a file or a record.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.operator import TextKind
from harnessctl.augment.rewriters.cache import Asked, Cache
from harnessctl.augment.rewriters.prompting import PROMPT_VERSION, Sheet, read_answer
from harnessctl.augment.rewriters.ranking import grams
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.bundle.text import Ref, Text
from harnessctl.errors import ModelError
from harnessctl.runtime.model_call import wait_before
from harnessctl.runtime.models.endpoint import Endpoint
from harnessctl.runtime.models.openai import OpenAIModel
from harnessctl.runtime.protocols import Model, ModelRequest, Sampling

Progress = Callable[[int, int], None]

_MAX_TOKENS = 4096
#: How many texts keep their answers: more than a large harness has.
_TEXTS_KEPT = 4096
_TEMPERATURE = 0.8
#: So many failures one after another mean that the endpoint is not to be had.
_FAILURES_IN_A_ROW = 4


class LlmRewriter:
    """A Rewriter over a cache folder. `k` wordings are asked for; `tries` bounds the requests for one text.

    Counters: `asked` requests sent; `refused` wordings that break law h or are no other wording; `fallbacks` texts that
    got the wordings of `rules`; `failures` what went wrong with single texts. `sleep`, and `model` in place of the
    endpoint's, are given by tests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        cache: Path,
        k: int = 12,
        concurrency: int = 8,
        timeout_s: float = 60.0,
        tries: int = 4,
        on_progress: Progress | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        model: Model | None = None,
    ) -> None:
        self.name = "llm"
        self.cache = Cache(cache)
        self.asked = 0
        self.refused = 0
        self.fallbacks = 0
        self.failures: list[str] = []
        self._endpoint = endpoint
        self._k = k
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self._tries = tries
        self._on_progress = on_progress
        self._sleep = sleep
        self._given = model
        self._rules = RulesRewriter()
        self._kept: dict[tuple[TextKind, tuple[str | Ref, ...]], Sequence[Text]] = {}

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        """Wordings from the cache that keep law h; those of `rules` where there are none."""
        key = (kind, tuple(text))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._accepted(text, kind)
            if len(self._kept) > _TEXTS_KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def _accepted(self, text: Text, kind: TextKind) -> Sequence[Text]:
        sheet = Sheet(text, kind)
        seen = {grams("".join(part if isinstance(part, str) else f" {part.name} " for part in text))}
        accepted: list[Text] = []
        for answer in self.cache.read(self._key(text, kind)) or ():
            wording = sheet.text(answer)
            if wording is None or wording_faults(text, wording):
                self.refused += 1
                continue
            its = grams("".join(part if isinstance(part, str) else f" {part.name} " for part in wording))
            if its in seen:
                self.refused += 1
                continue
            seen.add(its)
            accepted.append(wording)
        if not accepted:
            self.fallbacks += 1
            return self._rules.wordings(text, kind)
        return accepted

    def _key(self, text: Text, kind: TextKind) -> Asked:
        return Asked(list(text), kind, self._endpoint.model, PROMPT_VERSION)

    def prepare(self, texts: Iterable[tuple[Text, TextKind]]) -> None:
        """Ask for every text that the cache does not hold; what came is kept even when this stops.

        ModelError when the endpoint is not to be had (down, wrong key or address); UsageError when a setting is wrong.
        A single text that fails, or whose answer is no JSON, is left to `rules` and named in `failures`.
        """
        missing: dict[str, tuple[Text, TextKind]] = {}
        for text, kind in texts:
            asked = self._key(text, kind)
            if Sheet(text, kind).can_be_asked and self.cache.read(asked) is None:
                missing.setdefault(asked.key(), (text, kind))
        if missing:
            asyncio.run(self._ask_all(list(missing.values())))
            self._kept.clear()

    async def _ask_all(self, texts: list[tuple[Text, TextKind]]) -> None:
        model = self._given or OpenAIModel(self._endpoint)
        waiting = iter(texts)
        done = in_a_row = 0

        async def work() -> None:
            nonlocal done, in_a_row
            for text, kind in waiting:
                try:
                    answers = await self._ask(model, Sheet(text, kind))
                    self.cache.write(self._key(text, kind), answers)
                    in_a_row = 0
                except ValueError as error:
                    self.failures.append(f"{_shown(text)}: {error}")
                except ModelError as error:
                    in_a_row += 1
                    if in_a_row >= _FAILURES_IN_A_ROW or in_a_row == len(texts) or (not error.retryable and error.hint):
                        raise
                    self.failures.append(f"{_shown(text)}: {error.message}")
                done += 1
                if self._on_progress is not None:
                    self._on_progress(done, len(texts))

        workers = [asyncio.ensure_future(work()) for _ in range(min(self._concurrency, len(texts)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await model.aclose()

    async def _ask(self, model: Model, sheet: Sheet) -> list[str]:
        """The answers for one text. ValueError when they are no JSON twice, ModelError when the endpoint fails for good."""
        unusable = 0
        for attempt in range(1, self._tries + 1):
            request = ModelRequest(
                messages=sheet.messages(self._k),
                tools=[],
                sampling=Sampling(temperature=_TEMPERATURE, max_tokens=_MAX_TOKENS),
                deadline=time.monotonic() + self._timeout_s,
            )
            self.asked += 1
            try:
                return read_answer((await model.complete(request)).content)
            except ValueError:
                unusable += 1
                if unusable == 2 or attempt == self._tries:
                    raise
            except ModelError as error:
                if not error.retryable or attempt == self._tries:
                    raise
                # Jitter spreads the tries in time and is in no result.
                await self._sleep(wait_before(attempt, error.retry_after, random.random()))
        raise AssertionError("the last try returns or raises")


def _shown(text: Text) -> str:
    said = " ".join("".join(part if isinstance(part, str) else f"`{part.name}`" for part in text).split())
    return said if len(said) <= 60 else f"{said[:59]}…"
