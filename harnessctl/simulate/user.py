"""User: viewers' messages in other words, by a model behind an endpoint, kept in a cache [3.3].

What always holds: `reworded` reads the cache alone and draws by the scenario's id, so that equal caches give equal
scenarios in any process; a wording that does not keep what the script said is refused and counted, and the script stands.
Only the texts of messages change: gold, room, viewers and surroundings are the script's.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import orjson

from harnessctl.augment.rewriters.prompting import read_answer
from harnessctl.augment.stream import Stream
from harnessctl.errors import ModelError, StorageError
from harnessctl.records.comment import ViewerMessage
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.model_call import wait_before
from harnessctl.runtime.protocols import Model, ModelRequest, Sampling
from harnessctl.simulate.user_checks import kept_words, voice_fault
from harnessctl.storage import digest, write_atomic

FORMAT = "harnessctl/viewer-wordings.v1"
#: Raised whenever what is asked changes: it is part of an entry's name.
PROMPT_VERSION = 1
#: How many wordings are asked for.
WORDINGS = 6
_MAX_TOKENS = 1500
_TIMEOUT_S = 60.0
_TRIES = 3
_CONCURRENCY = 8
#: So many failures one after another mean that the endpoint is not to be had.
_FAILURES_IN_A_ROW = 4

_SYSTEM = """You reword what viewers of a live shopping stream write, as other viewers would write it: short, casual, \
sometimes with a typing slip or without punctuation.
Reply with one JSON object and nothing else: {"wordings": ["...", "..."]}.
In every wording:
- ask for, or say, exactly the same thing; add nothing and leave nothing out;
- keep every number, order number, name and each of the words under "keep" as they are written;
- keep a negation a negation, and stay in the language of the text;
- write one line, without quotation marks, links or markup."""


def viewer_wordings(root: Path) -> Path:
    """Where a project keeps what a model said for its viewers."""
    return root / "build" / "viewer-wordings"


class UserVoice(Protocol):
    """Who speaks for the viewers of a simulation."""

    def reworded(self, scenario: Scenario) -> Scenario:
        """The scenario with its messages in other words, or as it is. Equal scenarios give equal answers."""
        ...


class _Entry(msgspec.Struct, kw_only=True):
    format: str = FORMAT
    text: str
    language: str
    keep: list[str]
    model: str
    answers: list[str]


class CachedVoice:
    """A UserVoice over a folder of wordings, one file for each text.

    Counters: `said` messages in other words; `script` those for which nothing was there, or nothing that holds; `refused`
    wordings by what is wrong with them.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._kept: dict[str, list[str]] = {}
        self.said = 0
        self.script = 0
        self.refused: Counter[str] = Counter()

    def reworded(self, scenario: Scenario) -> Scenario:
        """See UserVoice."""
        request = scenario.request
        messages = [
            self._message(message, scenario, number) for number, message in enumerate(request.viewer_messages())
        ]
        if request.messages is None:
            request = msgspec.structs.replace(request, text=messages[0].text)
        else:
            request = msgspec.structs.replace(request, messages=messages)
        return msgspec.structs.replace(scenario, request=request)

    def _message(self, message: ViewerMessage, scenario: Scenario, number: int) -> ViewerMessage:
        keep = kept_words(message.text, scenario)
        found = self.wordings(message.text, scenario.language, keep)
        if not found:
            self.script += 1
            return message
        self.said += 1
        text = Stream("user", scenario.id, number).choice(found)
        return msgspec.structs.replace(message, text=text)

    def wordings(self, text: str, language: str, keep: list[str]) -> list[str]:
        """The wordings of a text that hold; those that do not are counted once."""
        key = _key(text, language, keep)
        found = self._kept.get(key)
        if found is None:
            found = []
            for answer in self._answers(key) or ():
                fault = voice_fault(text, answer, keep)
                if fault is not None:
                    self.refused[fault] += 1
                elif answer not in found:
                    found.append(answer.strip())
            self._kept[key] = found
        return found

    def _path(self, key: str) -> Path:
        return self._cache / key[:2] / f"{key}.json"

    def _answers(self, key: str) -> list[str] | None:
        """What the cache holds; None where there is nothing that can be read."""
        path = self._path(key)
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=_Entry)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        return entry.answers if entry.format == FORMAT else None


def cached_voice(user: str, root: Path) -> CachedVoice | None:
    """Who speaks for viewers where nobody is asked: what `world sample user=llm` left in the project; None for `script`."""
    return CachedVoice(viewer_wordings(root)) if user == "llm" else None


class EndpointVoice(CachedVoice):
    """A CachedVoice that can ask `model` for what its cache does not hold: `prepare`. The model is the caller's to close.

    `asked` counts requests, `failures` names texts for which no answer came; they keep their script.
    """

    def __init__(
        self,
        model: Model,
        cache: Path,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(cache)
        self._model = model
        self._on_progress = on_progress
        self._sleep = sleep
        self.asked = 0
        self.failures: list[str] = []

    async def prepare(self, scenarios: Iterable[Scenario]) -> None:
        """Ask for the messages of `scenarios`. ModelError when the endpoint is not to be had."""
        missing: dict[str, tuple[str, str, list[str]]] = {}
        for scenario in scenarios:
            for message in scenario.request.viewer_messages():
                keep = kept_words(message.text, scenario)
                key = _key(message.text, scenario.language, keep)
                if key not in missing and self._answers(key) is None:
                    missing[key] = (message.text, scenario.language, keep)
        waiting = iter(missing.items())
        done = in_a_row = 0

        async def work() -> None:
            nonlocal done, in_a_row
            for key, (text, language, keep) in waiting:
                try:
                    answers = await self._ask(text, language, keep)
                    entry = _Entry(text=text, language=language, keep=keep, model=self._model.name, answers=answers)
                    write_atomic(self._path(key), msgspec.json.encode(entry))
                    self._kept.pop(key, None)
                    in_a_row = 0
                except ValueError as error:
                    self.failures.append(f"{text!r}: {error}")
                except ModelError as error:
                    in_a_row += 1
                    if in_a_row in (_FAILURES_IN_A_ROW, len(missing)) or not error.retryable:
                        raise
                    self.failures.append(f"{text!r}: {error.message}")
                done += 1
                if self._on_progress is not None:
                    self._on_progress(done, len(missing))

        workers = [asyncio.ensure_future(work()) for _ in range(min(_CONCURRENCY, len(missing)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _ask(self, text: str, language: str, keep: list[str]) -> list[str]:
        """Wordings as the model wrote them. ValueError when its answer is no JSON twice, ModelError when it fails."""
        for attempt in range(1, _TRIES + 1):
            self.asked += 1
            try:
                reply = await self._model.complete(
                    ModelRequest(
                        messages=_messages(text, language, keep),
                        tools=[],
                        sampling=Sampling(temperature=0.9, max_tokens=_MAX_TOKENS),
                        deadline=time.monotonic() + _TIMEOUT_S,
                    )
                )
                return read_answer(reply.content)
            except ValueError:
                if attempt > 1:
                    raise
            except ModelError as error:
                if not error.retryable or attempt == _TRIES:
                    raise
                # Jitter spreads the tries in time and is in no result.
                await self._sleep(wait_before(attempt, error.retry_after, random.random()))
        raise ValueError("no answer that can be read")


def _messages(text: str, language: str, keep: list[str]) -> list[dict[str, Any]]:
    asked = {"count": WORDINGS, "text": text, "language": language, "keep": keep}
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": orjson.dumps(asked).decode()}]


def _key(text: str, language: str, keep: list[str]) -> str:
    return digest([PROMPT_VERSION, text, language, keep])
