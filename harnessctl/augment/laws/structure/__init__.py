"""Law a: what decides is the parent's: tools, checks, routes and code are the same up to the recorded renaming.

Whatever a variant may change (texts, orders, masks, numbers, a hook's retries, role and wrap) is as its record says; all
else equals the parent's.
"""

from __future__ import annotations

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.foreign import is_python
from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.structure.comparing import Fields, Found, others
from harnessctl.augment.laws.structure.hooks import check_hooks
from harnessctl.augment.laws.structure.prompt import check_prompt
from harnessctl.augment.laws.structure.skills import check_skills
from harnessctl.augment.laws.structure.tools import check_shown, check_tools

FIXED = Fields(
    "session_keep",
    "require_skill",
    "reply_format",
    "reply_schema",
    "route_default",
    "private_when",
    "silent_when",
    "scores",
    "judges",
    "servers",
    "files",
)


def check(case: Case) -> list[Broken]:
    """What breaks law a."""
    return [*check_state(case), *(Broken("a", place, reason) for place, reason in check_shown(case))]


def check_state(case: Case) -> list[Broken]:
    """What breaks law a in the state itself, whatever a model is shown of it."""
    return [
        Broken("a", place, reason)
        for part in (_whole, _surface, check_tools, check_hooks, check_skills, check_prompt)
        for place, reason in part(case)
    ]


def _whole(case: Case) -> Found:
    parent, variant = case.known.parent, case.variant
    yield from others(parent, variant, FIXED, "")
    if variant.code is not parent.code:
        for name, source in variant.code.items():
            if name in parent.code:
                if source != parent.code[name]:
                    yield f"code/{name}", "is other code than the parent's"
            elif case.changes.code.get(name) != source:
                yield f"code/{name}", "is not in the record"
            elif not is_python(source):
                yield f"code/{name}", "is not Python"
        for name in parent.code.keys() - variant.code.keys():
            yield f"code/{name}", "is gone"


def _surface(case: Case) -> Found:
    before, after, changes = case.known.parent.surface, case.variant.surface, case.changes
    gone = changes.masked_skills
    for what, old, renames in (("tools", before.tools, changes.tools), ("skills", before.skills, changes.skills)):
        new: dict[str, str] = getattr(after, what)
        due = {name: shown for name, shown in (old | renames).items() if what == "tools" or name not in gone}
        if new != due:
            for name in (name for name in due.keys() | new.keys() if new.get(name) != due.get(name)):
                yield (
                    f"surface/{what}/{name}",
                    f"is shown as {new.get(name, name)}; the record says {due.get(name, name)}",
                )
    due_parameters = dict(before.parameters)
    for name, renames in changes.parameters.items():
        due_parameters[name] = due_parameters.get(name, {}) | renames
    for name in due_parameters.keys() | after.parameters.keys():
        if due_parameters.get(name, {}) != after.parameters.get(name, {}):
            yield f"surface/parameters/{name}", "are not shown as the record says"
    due_order = before.parameter_order | changes.parameter_order
    for name in due_order.keys() | after.parameter_order.keys():
        if due_order.get(name) != after.parameter_order.get(name):
            yield f"surface/parameter_order/{name}", "is not the record's"
