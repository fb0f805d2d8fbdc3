"""When: which occurrences of its event a hook looks at. Every condition that is given must hold.

`tools`, `tags`, `groups` and `effects` are about the tool of the call under way: where there is none, they do not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import When
from harnessctl.runtime.checks.check import Moment, Setting, read_spec
from harnessctl.runtime.checks.expression import expression

Condition = Callable[[Moment], bool]


def compile_when(raw: dict[str, Any], setting: Setting) -> Condition | None:
    """The condition as one function; None when it always holds. HookError when it cannot be made."""
    if not raw:
        return None
    spec = read_spec(raw, When)
    conditions: list[Condition] = []
    if spec.tools or spec.tags or spec.groups or spec.effects:
        conditions.append(_tool_in(_tools(spec, setting)))
    if spec.result:
        statuses = frozenset(spec.result)
        conditions.append(lambda moment: moment.scene.status in statuses)
    if spec.skill_kinds:
        kinds = frozenset(spec.skill_kinds)
        conditions.append(lambda moment: any(skill.kind in kinds for skill in moment.scene.skills))
    if spec.expr is not None:
        evaluate = expression(spec.expr)
        conditions.append(lambda moment: bool(evaluate(moment.names)))
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return lambda moment: all(condition(moment) for condition in conditions)


def _tool_in(names: frozenset[str]) -> Condition:
    def holds(moment: Moment) -> bool:
        tool = moment.scene.tool
        return tool is not None and tool.name in names

    return holds


def _tools(spec: When, setting: Setting) -> frozenset[str]:
    """The tools that fit, which never change."""
    unknown = [name for name in spec.tools if name not in setting.tools]
    if unknown:
        raise HookError(f"when: there is no tool {', '.join(f'`{name}`' for name in unknown)}")
    tags = set(spec.tags)
    return frozenset(
        tool.name
        for tool in setting.tools.values()
        if (not spec.tools or tool.name in spec.tools)
        and (not tags or not tags.isdisjoint(tool.tags))
        and (not spec.groups or tool.group in spec.groups)
        and (not spec.effects or tool.effect in spec.effects)
    )
