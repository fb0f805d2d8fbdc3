"""hook-deny: the first call of one tool is refused and the next let through. Beyond the paper.

What always holds: the tool only reads; no other hook bounds how often it is called; there is a round to spare for the
second call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harnessctl.augment.effective import effective
from harnessctl.augment.embed import fresh_hook_id
from harnessctl.augment.languages import languages
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Action, HarnessState, Hook, Message, Tool
from harnessctl.bundle.text import Ref

#: What stands before and behind the tool's name.
SAYINGS = {
    "en": (
        ("The service was busy. Call ", " again with the same arguments."),
        ("Not this time: repeat the call of ", "."),
        ("This call was held back. Try ", " once more."),
        ("Refused once by the gateway; call ", " again, it will go through."),
    ),
    "zh": (
        ("服务正忙，请用同样的参数再次调用", "。"),
        ("这次没有执行，请重新调用", "。"),
        ("调用被暂时拦下，请再试一次", "。"),
    ),
}


class HookDeny:
    """Target: `hooks`. `tools` are patterns of the tools of which one is drawn.

    The way to an answer gets longer, and an agent that gives up at the first refusal does worse.
    """

    name = "hook-deny"
    dimension: Dimension = "hook"
    stage: Stage = "behave"
    keeps_difficulty = False
    options: Mapping[str, Any] = {"tools": ["*"]}
    reads: frozenset[str] = frozenset()

    def choices(self, state: HarnessState) -> Mapping[str, Sequence[str]]:
        """What the members of options may name."""
        return {"tools": _deniable(state)}

    def targets(self, draft: Draft) -> Sequence[str]:
        return ("hooks",) if _deniable(draft.state) else ()

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        patterns = settings.options.get("tools", self.options["tools"])
        tools = [name for name in _deniable(draft.state) if any(fnmatchcase(name, pattern) for pattern in patterns)]
        rounds = effective(draft, "max_rounds")
        # A round to load, one to call and one to reply, and the one that is lost.
        taken = 3 if draft.needs is None else draft.needs.min_rounds
        if not tools or (rounds is not None and taken + 1 > rounds):
            return False
        tool = stream.choice(tools)
        before, behind = stream.choice(SAYINGS[languages(draft.state)[0]])
        draft.changes.added_hooks.append(
            Hook(
                id=fresh_hook_id(draft, "second-time-lucky"),
                event="pre_tool",
                when={"tools": [tool]},
                check={"tool_called": {"tools": [tool]}},
                otherwise=Action(action="block", message=Message(text=[before, Ref("tool", tool), behind])),
                on_error="pass",
            )
        )
        return True


@once
def _deniable(state: HarnessState) -> list[str]:
    bounding = [check for hook in state.hooks for check in _parts(hook.check)]
    return [
        tool.name
        for tool in state.tools
        if tool.effect == "none"
        and tool.final is None
        and (tool.run or {}).get("builtin") != "load_skill"
        and not any(_bounds(check, tool) for check in bounding)
    ]


def _parts(check: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The check and those that it is composed of."""
    if check is None:
        return
    yield check
    for part in [*(check.get("all") or ()), *(check.get("any") or ()), check.get("not")]:
        yield from _parts(part)


def _bounds(check: dict[str, Any], tool: Tool) -> bool:
    """Whether a check counts calls of the tool, refused ones too, up to a bound, or may do so in an expression."""
    called = check.get("tool_called")
    if called is not None and called.get("max") is not None and called.get("ok") is None:
        named, tags = called.get("tools") or [], called.get("tags") or []
        return (not named or tool.name in named) and (not tags or not set(tags).isdisjoint(tool.tags))
    expression = str(check.get("expr") or "")
    return f"calls('{tool.name}')" in expression or f'calls("{tool.name}")' in expression


OPERATOR = HookDeny()
