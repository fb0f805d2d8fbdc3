"""Route: where a reply goes: to everybody, to the viewer alone, or nowhere [2.4]."""

from __future__ import annotations

from collections.abc import Mapping

from harnessctl.bundle.sandbox import compile_expression
from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.records.trajectory import Route
from harnessctl.runtime.names import names_of
from harnessctl.runtime.scene import Scene


class Router:
    """The route of one bundle's replies: `silent_when`, then `private_when`, then the default."""

    def __init__(self, state: HarnessState) -> None:
        self._default: Route = state.route_default
        self._rules = [(compile_expression(when), route) for when, route in _rules(state) if when is not None]
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in state.tools}

    def route(self, scene: Scene) -> Route:
        """Where `scene.reply` goes."""
        if self._rules:
            names = names_of("stop", scene, self._tools)
            for is_true, route in self._rules:
                if is_true(names):
                    return route
        return self._default


def _rules(state: HarnessState) -> list[tuple[str | None, Route]]:
    return [(state.silent_when, "silent"), (state.private_when, "private")]
