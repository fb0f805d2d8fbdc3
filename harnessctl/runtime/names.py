"""Names: what expressions, rewrites, python checks and command hooks see of a scene.

What always holds: names, tools and arguments are canonical. At every event there are `context limits skills_loaded
round session calls message`; an event adds its own (`EVENT_NAMES`). Nobody who is given names can change the scene by
them: expressions are sandboxed, python gets copies, commands get JSON.

`session` is {id, turns, skills, history}. `tool` is the tool's name, with `group`, `tags` and `effect` as attributes.
`calls('get_product', tag='auth', ok=true, scope='session')` is the list of finished calls that fit, oldest first, each
with `round name arguments status result`; every argument may be left out, and several names mean any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Self

from harnessctl.bundle.state import Tool
from harnessctl.manifests.events import EVENT_NAMES
from harnessctl.records.trajectory import ToolCall
from harnessctl.runtime.scene import Scene


class ToolName(str):
    """A tool's canonical name that also carries what hooks ask of a tool."""

    group: str
    tags: tuple[str, ...]
    effect: str

    @classmethod
    def of(cls, tool: Tool) -> Self:
        """The name of `tool`."""
        name = cls(tool.name)
        name.group, name.tags, name.effect = tool.group, tuple(tool.tags), tool.effect
        return name


def finished_calls(scene: Scene, scope: str) -> list[ToolCall]:
    """The finished calls of the request, or of the session's kept turns and the request, oldest first."""
    return scene.session.calls + scene.calls if scope == "session" else scene.calls


def calls_of(scene: Scene, tools: Mapping[str, Tool]) -> Callable[..., list[ToolCall]]:
    """The function `calls` of expressions over `scene`."""

    def calls(
        *names: str,
        tag: str | None = None,
        group: str | None = None,
        ok: bool | None = None,
        scope: Literal["request", "session"] = "request",
    ) -> list[ToolCall]:
        found = []
        for call in finished_calls(scene, scope):
            tool = tools.get(call.name)
            if (
                (not names or call.name in names)
                and (tag is None or (tool is not None and tag in tool.tags))
                and (group is None or (tool is not None and group == tool.group))
                and (ok is None or ok is (call.status == "ok"))
            ):
                found.append(call)
        return found

    return calls


def names_of(event: str, scene: Scene, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """The names at `event`, for expressions and templates: values are the scene's own and must not be changed."""
    session = scene.session
    names: dict[str, Any] = {
        "context": scene.context,
        "limits": scene.limits,
        "skills_loaded": [skill.name for skill in scene.skills],
        "round": scene.round,
        "session": {
            "id": scene.request.session,
            "turns": session.turns,
            "skills": session.skills,
            "history": session.history,
        },
        "calls": calls_of(scene, tools),
        "message": scene.message,
    }
    for name in EVENT_NAMES[event]:
        if name == "tool":
            names["tool"] = ToolName.of(scene.tool) if scene.tool is not None else None
        else:
            names[name] = getattr(scene, name)
    return names


def plain_call(call: ToolCall) -> dict[str, Any]:
    """A finished call as JSON, its values copied."""
    return {
        "round": call.round,
        "name": call.name,
        "arguments": copied(call.arguments),
        "status": call.status,
        "result": copied(call.result),
    }


def copied(value: Any) -> Any:
    """`value` with every list and dict of it copied, and calls as `plain_call` gives them."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return plain_call(value) if isinstance(value, ToolCall) else value


class NamesView(Mapping[str, Any]):
    """The names for python checks: read-only, each value copied when it is first asked for.

    `calls(...)` takes what it takes in an expression and gives dicts.
    """

    __slots__ = ("_copies", "_names")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._copies: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._copies:
            value = self._names[name]
            self._copies[name] = self._calls if name == "calls" else copied(value)
        return self._copies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<names: {' '.join(self._names)}>"

    def _calls(self, *names: str, **only: Any) -> list[dict[str, Any]]:
        return [plain_call(call) for call in self._names["calls"](*names, **only)]
