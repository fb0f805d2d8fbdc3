"""Prompts: what the policy is asked in an OPD: prompts of a file, and general tasks that are made.

What always holds: the prompts of a step are a function of the seed and the step's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from harnessctl.augment.stream import Stream
from harnessctl.data.general import draw
from harnessctl.errors import RecordError, TrainingError
from harnessctl.storage import read_json_lines


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _Call(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    """What a template needs of a message; more may stand there."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


@dataclass(slots=True, frozen=True)
class Question:
    """A conversation that waits for an answer. `messages` and `tools` are in OpenAI form."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Prompt:
    """A question in its place: `id` and `seed` are the same whenever it is asked there."""

    id: str
    question: Question
    seed: int


class Prompts:
    """`given` are the questions of a file; `made` makes a general one of a number, of which kind a share `made_share` of
    the prompts are (all, without a file). `fits` says which can be asked at all."""

    def __init__(
        self,
        given: Sequence[Question],
        made: Callable[[int], Question],
        *,
        made_share: float,
        seed: int,
        fits: Callable[[Question], bool] = lambda _: True,
    ) -> None:
        self._given = [question for question in given if fits(question)]
        if given and not self._given:
            raise TrainingError(
                f"none of the {len(given)} prompts fits", hint="raise prompts.max_tokens, or give shorter prompts"
            )
        self._made = made
        self._share = made_share if self._given else 1.0
        self._seed = seed
        self._fits = fits
        #: How many of the file's are never asked.
        self.passed_over = len(given) - len(self._given)

    def step(self, step: int, many: int) -> list[Prompt]:
        """The prompts of step `step` (from 0)."""
        return [self._prompt(step, place) for place in range(many)]

    def _prompt(self, step: int, place: int) -> Prompt:
        stream = Stream(self._seed, "opd", step, place)
        question = self._general(stream) if stream.chance(self._share) else stream.choice(self._given)
        return Prompt(f"{step}:{place}", question, stream.integer(0, 0x7FFFFFFF))

    def _general(self, stream: Stream) -> Question:
        for _ in range(100):
            question = self._made(stream.integer(0, 0x7FFFFFFF))
            if self._fits(question):
                return question
        raise TrainingError("no general task is short enough", hint="raise prompts.max_tokens")


def general_question(seed: int, number: int) -> Question:
    """One of the turns of general item `number`, with the right answers before it."""
    item = draw(seed, number)
    turn = Stream(seed, "opd turn", number).integer(0, len(item.turns) - 1)
    return Question(item.before(turn), item.tools)


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSON Lines file. RecordError names path, line and cause; TrainingError where there is none."""
    found = [Question(_messages(path, number, document)) for number, document in read_json_lines(path)]
    if not found:
        raise TrainingError(f"{path} holds no prompt", hint="prompts.path=null asks general tasks alone")
    return found


def _messages(path: Path, number: int, document: Any) -> list[dict[str, Any]]:
    fields = document if isinstance(document, dict) else {}
    prompt, messages = fields.get("prompt"), fields.get("messages")
    if isinstance(prompt, str) and prompt.strip():
        return [{"role": "user", "content": prompt}]
    if isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages):
        try:
            msgspec.convert(messages, list[_Message])
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: messages: {error}") from error
        last = messages[-1].get("role")
        if last in ("user", "tool"):
            return messages
        raise RecordError(f"{path}:{number}: the last message is of role {last!r}; allowed user, tool")
    raise RecordError(f'{path}:{number}: not a prompt; allowed {{"prompt": TEXT}} or {{"messages": [...]}}')
