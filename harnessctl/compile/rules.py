"""Rules of skills and items of prompt blocks: references, limits, and what stands after or requires what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harnessctl.bundle import state
from harnessctl.compile.order import cycle_in, shown
from harnessctl.compile.references import text_of, written_number
from harnessctl.compile.scope import Scope, listed
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.passage import Passage, Place


@dataclass(slots=True)
class RuleInput:
    """One rule as written; `values` are `after`, `requires` and `limit`, `places` where each of them stands."""

    id: str
    passage: Passage
    place: Place
    protected: bool = False
    verbatim: bool = False
    values: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)


def bind_rules(rules: Sequence[RuleInput], scope: Scope, faults: Faults) -> tuple[list[state.Rule], list[list[object]]]:
    """The rules of one owner as the state keeps them, and [limit, number, line, column] for each that a limit governs."""
    ids = {rule.id: rule for rule in rules}
    out: list[state.Rule] = []
    numbers: list[list[object]] = []
    for rule in rules:
        limit = rule.values.get("limit")
        if limit is not None and limit not in scope.limits:
            faults.add(
                _fault(
                    rule,
                    "limit",
                    "limit-unknown",
                    "there is no limit of this name",
                    limit,
                    listed(scope.limits),
                    scope.near(limit, scope.limits) or "declare it under limits in the harness",
                )
            )
            limit = None
        text = text_of(rule.passage, scope, faults, rules=ids, limit=limit)
        if limit is not None and (number := written_number(rule.passage)) is not None:
            numbers.append([limit, number, *rule.place])
        for edge in ("after", "requires"):
            target = rule.values.get(edge)
            if target is not None and target not in ids:
                faults.add(
                    _fault(
                        rule,
                        edge,
                        "rule-unknown",
                        f"`{edge}` names a rule that is not here",
                        target,
                        listed(ids),
                        scope.near(target, ids),
                    )
                )
        out.append(
            state.Rule(
                id=rule.id,
                text=text,
                protected=rule.protected,
                verbatim=rule.verbatim,
                after=rule.values.get("after"),
                requires=rule.values.get("requires"),
                limit=limit,
            )
        )
    for edge in ("after", "requires"):
        cycle = cycle_in({rule.id: [rule.values[edge]] for rule in rules if edge in rule.values})
        if cycle:
            first = ids[cycle[0]]
            faults.add(
                _fault(
                    first,
                    edge,
                    "rule-cycle",
                    f"rules that are joined by `{edge}` go round in a circle",
                    shown(cycle),
                    "no circle",
                    f"remove one of the `{edge}`",
                )
            )
    _order(rules, faults)
    return out, numbers


def _order(rules: Sequence[RuleInput], faults: Faults) -> None:
    position = {rule.id: n for n, rule in enumerate(rules)}
    for n, rule in enumerate(rules):
        after = rule.values.get("after")
        if after is not None and position.get(after, -1) > n and rules[position[after]].values.get("after") != rule.id:
            faults.add(
                _fault(
                    rule,
                    "after",
                    "rule-order",
                    f"#{rule.id} stands before the rule that it is said to stand after",
                    f"after={after}",
                    f"#{after} above #{rule.id}",
                    "move one of the two",
                )
            )


def _fault(rule: RuleInput, value: str, code: str, message: str, got: str, allowed: str, hint: str) -> Fault:
    line, col = rule.places.get(value, rule.place)
    return Fault(rule.passage.path, line, col, code, message, got, allowed, hint)
