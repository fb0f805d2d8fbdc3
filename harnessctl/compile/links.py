"""Links: what is wrong between the parts of a harness, and between harnesses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harnessctl.compile.builtins import check_builtins
from harnessctl.compile.harnesses import Plan
from harnessctl.compile.order import cycle_in, shown
from harnessctl.compile.scope import listed
from harnessctl.compile.target import Target
from harnessctl.compile.unit import Unit, fault_at
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.manifests.violations import did_you_mean


def unique_harnesses(plans: Sequence[Plan], faults: Faults) -> None:
    """No two harnesses of one name: their bundles would overwrite each other."""
    seen: dict[str, str] = {}
    for plan in plans:
        name = plan.spec.name
        if name in seen:
            faults.add(
                plan.document.fault(
                    "harness-duplicate",
                    f"two harnesses are called `{name}`",
                    "name",
                    got=name,
                    allowed=f"another name than that in {seen[name]}",
                )
            )
        seen.setdefault(name, plan.file.path)


def named_files(plan: Plan, units: Iterable[Unit], faults: Faults) -> None:
    """The prompt and the world that a harness names are there."""
    for field, kind, folder, name in (
        ("prompt", "PromptPipeline", "prompts", plan.spec.prompt),
        ("world", "World", "worlds", plan.spec.world),
    ):
        known = [unit.file.name for unit in units if unit.file.kind == kind]
        if name is not None and name not in known:
            faults.add(
                plan.document.fault(
                    f"{field}-unknown",
                    f"there is no {field} of this name",
                    field,
                    got=name,
                    allowed=listed(known),
                    hint=did_you_mean(name, known) or f"add manifests/{folder}/{name}.yaml",
                )
            )


def check(target: Target, used_limits: set[str], faults: Faults) -> None:
    """Everything between the parts of one harness."""
    _duplicates(target, faults)
    check_builtins(target, faults)
    enforced(target, faults)
    _unused_limits(target, used_limits, faults)
    _merged(target, faults)


def _duplicates(target: Target, faults: Faults) -> None:
    declared = [t for unit in target.units["Tools"] for t in unit.outline.get("tools", [])]
    declared += [{"name": tool.name, "place": place} for tool, place in target.discovered]
    _unique("tool", ((t["name"], t["place"]) for t in declared), faults)
    hooks = [h for unit in target.units["Hooks"] for h in unit.outline.get("hooks", [])]
    _unique("hook", ((h["id"], h["place"]) for h in hooks), faults)
    servers = [s for unit in target.units["Tools"] for s in unit.outline.get("servers", {}).items()]
    _unique("server", ((name, s["place"]) for name, s in servers), faults)
    twins: dict[str, str] = {}
    for tool in declared:
        first = twins.setdefault(tool["name"].lower(), tool["name"])
        if first != tool["name"]:
            message = "two tools have names that differ in case alone, which a model mixes up"
            faults.add(
                fault_at(tool["place"], "tool-twin", message, tool["name"], f"other than {first}", "", "warning")
            )


def _unique(what: str, found: Iterable[tuple[str, list[Any]]], faults: Faults) -> None:
    seen: dict[str, list[Any]] = {}
    for name, place in found:
        if name in seen:
            path, line, col = seen[name]
            faults.add(
                fault_at(
                    place,
                    f"{what}-duplicate",
                    f"two {what}s are called `{name}`",
                    name,
                    f"one of each name; the other is at {path}:{line}:{col}",
                    "rename or remove one of the two",
                )
            )
        seen.setdefault(name, place)


def enforced(target: Target, faults: Faults) -> None:
    """The rules that hooks say they enforce are there."""
    for bound in target.bound["Hooks"]:
        for rule, path, line, col in bound.links.get("enforces", []):
            skill, _, rule_id = rule.partition("#")
            known = target.scope.skills.get(skill)
            if known is None:
                faults.add(
                    Fault(
                        path,
                        line,
                        col,
                        "skill-unknown",
                        "the hook enforces a rule of a skill that there is not",
                        rule,
                        listed(target.scope.skills),
                        target.scope.near(skill, target.scope.skills),
                    )
                )
            elif rule_id not in known["rules"]:
                faults.add(
                    Fault(
                        path,
                        line,
                        col,
                        "rule-unknown",
                        f"the skill `{skill}` has no such rule",
                        rule,
                        listed(f"{skill}#{name}" for name in known["rules"]),
                        target.scope.near(rule_id, known["rules"]),
                    )
                )


def _unused_limits(target: Target, used: set[str], faults: Faults) -> None:
    assert target.plan is not None
    used = set(used)
    for bound in target.all_bound:
        used.update(name for (name,) in bound.links.get("limit-used", []))
        used.update(number[1] for number in bound.links.get("limit-number", []))
    for name in target.plan.spec.limits:
        if name not in used and name not in DEFAULT_LIMITS:
            faults.add(
                target.plan.document.fault(
                    "limit-unused",
                    f"nothing reads the limit `{name}`",
                    "limits",
                    name,
                    key=True,
                    hint="mark the number that it governs with limit=, or remove it",
                    severity="warning",
                )
            )


def _merged(target: Target, faults: Faults) -> None:
    """One module name, one source: two manifests must not bring two modules of one name."""
    seen: dict[str, tuple[str, list[Any]]] = {}
    for bound in target.all_bound:
        for name, source in bound.code.items():
            place = bound.places[f"code/{name}"]
            if name in seen and seen[name][0] != source:
                faults.add(
                    fault_at(
                        place,
                        "code-clash",
                        f"two modules of the harness are called `{name}`",
                        place[0],
                        f"one module of each name; the other is {seen[name][1][0]}",
                        "rename one of the files",
                    )
                )
            seen.setdefault(name, (source, place))


def judges(targets: Sequence[Target], faults: Faults) -> None:
    """No harness is judged, through others, by itself."""
    by_name: dict[str, str] = {}
    for target in targets:
        assert target.plan is not None
        by_name[target.plan.spec.name] = by_name[target.plan.file.name] = target.plan.spec.name
    edges: dict[str, list[tuple[str, list[Any]]]] = {}
    for target in targets:
        assert target.plan is not None
        found = [need for bound in target.bound["Hooks"] for need in bound.links.get("judge", [])]
        edges[target.plan.spec.name] = [(by_name.get(name, name), place) for name, *place in found]
    cycle = cycle_in({name: [judge for judge, _ in found] for name, found in edges.items()})
    if cycle:
        following = (cycle[1:] + cycle)[0]
        place = next(place for judge, place in edges[cycle[0]] if judge == following)
        faults.add(
            fault_at(
                place,
                "judge-cycle",
                "a harness is judged by itself",
                shown(cycle),
                "a judge without a judge of its own",
            )
        )


def limit_numbers(targets: Sequence[Target], faults: Faults) -> None:
    """A number in the text that no harness has as the limit's value: a reader of the file would be misled."""
    values: dict[tuple[Any, ...], set[float]] = {}
    for target in targets:
        for bound in target.all_bound:
            for path, limit, number, line, col in bound.links.get("limit-number", []):
                if target.plan is not None and limit in target.limits:
                    values.setdefault((path, limit, number, line, col), set()).add(float(target.limits[limit].value))
    for (path, limit, number, line, col), found in values.items():
        if number not in found:
            faults.add(
                Fault(
                    path,
                    line,
                    col,
                    "limit-differs",
                    f"the text says {number:g} and the limit `{limit}` another number",
                    f"{number:g}",
                    " or ".join(f"{value:g}" for value in sorted(found)),
                    "the model is told the limit; write the same number",
                    "warning",
                )
            )
