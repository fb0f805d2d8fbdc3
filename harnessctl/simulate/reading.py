"""Reading: one request's messages as an agent reads them: what was called, what came back, what was said [2.2].

What always holds: only the messages are read, in the names that the model was shown; nothing is taken from the runtime.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonschema_rs
import orjson

from harnessctl.bundle.state import Hook
from harnessctl.bundle.validators import validator_of
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.notices import EMPTY_MESSAGE, NOT_LET, NOT_RUN, WITHHELD, Notices
from harnessctl.runtime.surface import SurfaceView
from harnessctl.simulate.faults import STALE

#: `stale`: an answer that says of itself that it is old; `malformed`: one that is not what the tool answers.
Came = Literal["ok", "failed", "denied", "malformed", "stale", "blocked"]

_DENIED = ("not permitted", "permission", "denied", "forbidden", "not allowed")
#: Hooks whose messages stand in the place of a result.
_OF_CALLS = ("post_model", "pre_tool", "post_tool")
_decoder = json.JSONDecoder()


@dataclass(slots=True, frozen=True)
class Made:
    """A call and what came of it, in canonical names; one that used a name that is nobody's is `blocked`, as written."""

    tool: str
    arguments: dict[str, Any]
    came: Came


@dataclass(slots=True)
class Turn:
    """One request so far. `rounds` counts the model's messages, `sent_back` those of them that were replies.

    `texts` is everything that a number may be taken from: the system message, the viewer's and the results that came.
    `results` are what stood in the messages that answered the calls of `made`.
    """

    rounds: int = 0
    sent_back: int = 0
    made: list[Made] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Reading:
    """How far a list of messages has been read: the members `seen`, the calls in them by id, and what they come to."""

    messages: Sequence[dict[str, Any]]
    scenario: Scenario
    seen: list[dict[str, Any]]
    turn: Turn
    calls: dict[str, tuple[str, dict[str, Any], bool]] = field(default_factory=dict)

    def goes_on(self, messages: Sequence[dict[str, Any]], scenario: Scenario) -> bool:
        """Whether this is the same list, with the same members first. In a session a later message of the viewer's begins
        the turn anew, so that such a list is always read whole."""
        return (
            messages is self.messages
            and scenario is self.scenario
            and scenario.request.session is None
            and len(messages) >= len(self.seen)
            and all(map(operator.is_, messages, self.seen))
        )


class Reader:
    """Reads messages of one harness."""

    def __init__(self, surface: SurfaceView) -> None:
        self._surface = surface
        self._notices = Notices(surface)
        self._latest: _Reading | None = None
        self._skills = frozenset(skill.name for skill in surface.state.skills)
        hooks = surface.state.hooks
        self._refusals = tuple(text for hook in hooks if hook.event in _OF_CALLS for text in _messages(hook, surface))
        self._sent_back = (
            *(text for hook in hooks for text in _messages(hook, surface)),
            self._notices.need_skill,
            self._notices.reply_format("").rstrip("."),
            EMPTY_MESSAGE,
        )
        self._results: dict[str, jsonschema_rs.Validator] = {}
        self._is_text: set[str] = set()
        for tool in surface.state.tools:
            if tool.result is None:
                continue
            if tool.result.get("type") == "string":
                self._is_text.add(tool.name)
            else:
                self._results[tool.name] = validator_of(tool.result)

    def turn(self, messages: Sequence[dict[str, Any]], scenario: Scenario) -> Turn:
        """The request's own part of `messages`: what follows the viewer's message. The Turn is good until the next call.

        A list that has only grown since the last call is read on from there: a request's messages are asked about in
        every round.
        """
        latest = self._latest
        if latest is None or not latest.goes_on(messages, scenario):
            begin = self._begin(messages, scenario)
            texts = [message["content"] or "" for message in messages[: begin + 1] if message["role"] != "tool"]
            latest = self._latest = _Reading(messages, scenario, list(messages[: begin + 1]), Turn(texts=texts))
        turn, calls = latest.turn, latest.calls
        new = messages[len(latest.seen) :]
        latest.seen += new
        for message in new:
            if message["role"] == "assistant":
                turn.rounds += 1
                made = message.get("tool_calls") or ()
                turn.sent_back += not made
                for call in made:
                    calls[call["id"]] = self._call(call["function"])
            elif message["role"] == "tool":
                tool, arguments, is_known = calls.get(message["tool_call_id"], ("", {}, False))
                came = self.came(tool, arguments, message["content"]) if is_known else "blocked"
                turn.made.append(Made(tool, arguments, came))
                turn.results.append(message["content"])
                if came in ("ok", "stale"):
                    turn.texts.append(message["content"])
        return turn

    def _begin(self, messages: Sequence[dict[str, Any]], scenario: Scenario) -> int:
        """The index of the viewer's message: the first of a user; in a session, the latest that has the viewer's words and
        is not one of a hook."""
        if scenario.request.session is None:
            return next((number for number, message in enumerate(messages) if message["role"] == "user"), -1)
        users = [number for number, message in enumerate(messages) if message["role"] == "user"]
        words = [message.text.strip() for message in scenario.request.viewer_messages()]
        for number in reversed(users):
            content = messages[number]["content"] or ""
            if all(text in content for text in words) and not content.startswith(self._sent_back):
                return number
        return users[0] if users else -1

    def came(self, tool: str, arguments: dict[str, Any], content: str) -> Came:
        """What a call's result message says that came of it."""
        if content in (NOT_RUN, NOT_LET, WITHHELD) or content.startswith(self._refusals):
            return "blocked"
        load_skill = self._surface.load_skill
        if load_skill is not None and tool == load_skill.name:
            return self._loaded(str(arguments.get(self._surface.load_skill_argument)), content)
        if content.startswith("error: "):
            said = content.casefold()
            return "denied" if any(word in said for word in _DENIED) else "failed"
        return self._answer(tool, arguments, content)

    def _answer(self, tool: str, arguments: dict[str, Any], content: str) -> Came:
        value, is_json = _leading_json(content)
        if is_json and isinstance(value, dict) and value.get(STALE) is True:
            return "stale"
        if not content.strip() or (is_json and _tells_nothing(value, arguments)):
            return "malformed"
        if tool in self._is_text:
            return "ok"
        validator = self._results.get(tool)
        if not is_json:
            return "malformed" if validator is not None or content[:1] in "{[" else "ok"
        return "ok" if validator is None or validator.is_valid(value) else "malformed"

    def _loaded(self, skill: str, content: str) -> Came:
        if skill not in self._skills:
            return "blocked"
        is_loaded = content.startswith(self._surface.skill_body(skill))
        return "ok" if is_loaded or content.startswith(self._notices.already_loaded(skill)) else "blocked"

    def _call(self, function: dict[str, Any]) -> tuple[str, dict[str, Any], bool]:
        """(tool, arguments, whether both are names on offer); what is nobody's name stays as it was written."""
        tool = self._surface.tool_to_canonical(function["name"])
        try:
            written = orjson.loads(function["arguments"])
        except orjson.JSONDecodeError:
            return tool or function["name"], {}, False
        if tool is None or not isinstance(written, dict):
            return tool or function["name"], written, False
        arguments = self._surface.args_to_canonical(tool, written)
        return tool, written if arguments is None else arguments, arguments is not None


def _messages(hook: Hook, surface: SurfaceView) -> list[str]:
    """How the messages of this hook begin. What a post_tool hook says is apart from the result, unless it blocks."""
    action = hook.otherwise or hook.then
    begins = [f"Stopped by the hook {hook.id}."]
    if action is None or action.message is None:
        return begins
    if hook.event != "post_tool" or action.action == "block":
        begins.append(surface.render(action.message.text))
    wrap = action.message.wrap
    return [*begins, *(f"<{wrap}>\n{text}" for text in begins)] if wrap else begins


def _tells_nothing(value: Any, arguments: dict[str, Any]) -> bool:
    """Whether a result has null or empty texts where it should say something; an empty list says that there is none."""
    said = list(arguments.values())
    # True is equal to 1, and says something all the same.
    leaves = [leaf for leaf in _leaves(value) if isinstance(leaf, bool) or leaf not in said]
    return bool(leaves) and all(leaf is None or leaf == "" for leaf in leaves)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


def _leading_json(content: str) -> tuple[Any, bool]:
    """(the JSON value that `content` is or begins with, whether there is one); a hook's message may follow it."""
    try:
        return orjson.loads(content), True
    except orjson.JSONDecodeError:
        pass
    if content[:1] not in "{[":
        return None, False
    try:
        return _decoder.raw_decode(content)[0], True
    except ValueError:
        return None, False
