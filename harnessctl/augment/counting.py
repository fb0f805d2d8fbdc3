"""Counting: the coverage of variants, worked out record by record.

What always holds: it depends on the records alone and not on their order, so that it can be counted again from a file; its
size does not grow with the number of variants, since of one place at most MAX_FORMS surface forms are told apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from harnessctl.augment.coverage import MAX_FORMS, Applied, Coverage, Refused, Target, Values
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import Changes, Variation

#: Refusals beyond this many are counted, not listed.
MAX_REFUSALS = 100


class Forms:
    """Surface forms of one place, told apart by digest."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def add(self, form: Any) -> None:
        """Take one form."""
        if len(self._seen) < MAX_FORMS:
            encoded = b"" if form is None else form.encode() if isinstance(form, str) else msgspec.json.encode(form)
            self._seen.add(hashlib.blake2b(encoded, digest_size=8).digest())

    def __len__(self) -> int:
        return len(self._seen)


class _Uses:
    """What an operator, or the changes of a hook, did."""

    def __init__(self) -> None:
        self._variants = self._targets = 0
        self._forms = Forms()

    def add(self, targets: Sequence[str]) -> None:
        self._variants += 1
        self._targets += len(targets)
        for target in targets:
            self._forms.add(target)

    def applied(self) -> Applied:
        return Applied(variants=self._variants, targets=self._targets, distinct=len(self._forms))


class Counting:
    """Counts variants of `state`: `add` takes each record once, `refuse` each refusal. `without_wording` are places."""

    def __init__(self, state: HarnessState, without_wording: Iterable[str] = ()) -> None:
        self.state = state
        self.without_wording = list(without_wording)
        self._skills = {skill.name: [rule.id for rule in skill.rules] for skill in state.skills}
        self._tools = [tool.name for tool in state.tools]
        self._blocks = {block.id: [item.id for item in block.items] for block in state.prompt.blocks if block.items}
        self._limits = list(state.limits)
        self._forms: defaultdict[str, Forms] = defaultdict(Forms)
        self._masked: Counter[str] = Counter()
        self._operators: defaultdict[str, _Uses] = defaultdict(_Uses)
        self._hooks: defaultdict[str, _Uses] = defaultdict(_Uses)
        self._values: dict[str, Values] = {}
        self._refusals: list[Refused] = []
        self.variants = self.refused = self._fallbacks = 0

    def add(self, variation: Variation) -> None:
        """Count one variant."""
        changes = variation.changes
        self.variants += 1
        self._fallbacks += variation.fallbacks
        for operator, targets in variation.operators.items():
            self._operators[operator].add(targets)
        for name, rules in self._skills.items():
            at = f"skills/{name}"
            if name in changes.masked_skills:
                self._masked[at] += 1
                continue
            self._forms[f"{at} names"].add(changes.skills.get(name))
            self._forms[f"{at} descriptions"].add(changes.texts.get(f"{at}/description"))
            self._count_rules(f"{at}/rules", rules, changes.masked_rules.get(name, ()), changes)
        for name in self._tools:
            at = f"tools/{name}"
            self._forms[f"{at} names"].add(changes.tools.get(name))
            self._forms[f"{at} descriptions"].add(changes.texts.get(f"{at}/description"))
            self._forms[f"{at} parameters"].add([changes.parameters.get(name), changes.parameter_order.get(name)])
        for name, items in self._blocks.items():
            self._count_rules(f"prompt/{name}/items", items, changes.masked_items.get(name, ()), changes)
        for name, value in changes.limits.items():
            self._count_limit(name, float(value))
        self._count_hooks(changes)

    def refuse(self, refused: Refused) -> None:
        """Count one variant that broke a law."""
        self.refused += 1
        if len(self._refusals) < MAX_REFUSALS:
            self._refusals.append(refused)

    def coverage(self) -> Coverage:
        """What was counted so far."""
        rules = {f"{name}#{rule}": f"skills/{name}/rules/{rule}" for name, ids in self._skills.items() for rule in ids}
        rules |= {f"{name}#{item}": f"prompt/{name}/items/{item}" for name, ids in self._blocks.items() for item in ids}
        return Coverage(
            variants=self.variants,
            refused=self.refused,
            operators={name: self._operators[name].applied() for name in sorted(self._operators)},
            skills={name: self._target(f"skills/{name}") for name in self._skills},
            tools={name: self._target(f"tools/{name}") for name in self._tools},
            rules={name: self._target(at) for name, at in rules.items()},
            limits={name: self._values[name] for name in self._limits if name in self._values},
            hooks={name: self._hooks[name].applied() for name in sorted(self._hooks)},
            fallbacks=self._fallbacks,
            without_wording=self.without_wording,
            refusals=self._refusals,
        )

    def _target(self, at: str) -> Target:
        counted = {kind: len(self._forms.get(f"{at} {kind}", ())) for kind in ("names", "descriptions", "parameters")}
        return Target(**counted, wordings=len(self._forms.get(f"{at} wordings", ())), masked=self._masked[at])

    def _count_rules(self, at: str, ids: Iterable[str], masked: Iterable[str], changes: Changes) -> None:
        for rule in ids:
            place = f"{at}/{rule}"
            if rule in masked:
                self._masked[place] += 1
            else:
                self._forms[f"{place} wordings"].add(changes.texts.get(place))

    def _count_limit(self, name: str, value: float) -> None:
        before = self._values.get(name, Values(variants=0, least=value, most=value))
        self._values[name] = Values(
            variants=before.variants + 1, least=min(before.least, value), most=max(before.most, value)
        )

    def _count_hooks(self, changes: Changes) -> None:
        changed: dict[str, list[str]] = {}
        for name, change in changes.hooks.items():
            changed[name] = [field for field, value in msgspec.structs.asdict(change).items() if value is not None]
        for place in changes.texts:
            if place.startswith("hooks/"):
                changed.setdefault(place.split("/")[1], []).append("message")
        for name, fields in changed.items():
            self._hooks[name].add(fields)
