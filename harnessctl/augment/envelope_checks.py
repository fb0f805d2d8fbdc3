"""What an envelope may say: of its operators alone, and of one harness."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harnessctl.augment.laws.numbers import written_out
from harnessctl.augment.names import STYLES, NameMaker
from harnessctl.augment.operator import Draft, Operator, Settings, TextKind
from harnessctl.augment.parent import Parent
from harnessctl.augment.step import allows
from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text, format_number
from harnessctl.compile.scope import listed
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.manifests.violations import did_you_mean, shown, type_name

#: The operator that leaves skills out.
SKILL_MASK = "skill-mask"
#: Values of options that mean the same in every operator; an operator's own `allowed` goes before.
_ALLOWED: Mapping[str, Sequence[Any]] = {"styles": STYLES}


def check_settings(document: Document, envelope: Envelope, operators: Mapping[str, Operator], faults: Faults) -> None:
    """Faults of an envelope whatever the harness: operators that there are not, settings that nobody reads."""
    for name, settings in envelope.operators.items():
        operator = operators.get(name)
        at = ("operators", name)
        if operator is None:
            message, hint = "there is no operator of this name", did_you_mean(name, operators)
            hint = hint or "one's own operators live in manifests/operators/"
            fault = document.fault("envelope-operator", message, *at, key=True, got=name, allowed=listed(operators), hint=hint)  # fmt: skip
            faults.add(fault)
            continue
        for setting, is_given in (("count", settings.count is not None), ("ranges", bool(settings.ranges))):
            if is_given and setting not in operator.reads:
                message = f"the operator {name} does not read `{setting}`"
                allowed = listed(["rate", "allow", "deny", *operator.reads, *(["options"] if operator.options else [])])
                fault = document.fault("envelope-setting", message, *at, setting, key=True, got=setting, allowed=allowed, hint="remove it")  # fmt: skip
                faults.add(fault)
        _check_count(document, at, settings, faults)
        _check_allow(document, at, settings, faults)
        for limit, (low, high) in settings.ranges.items():
            if low > high:
                message = "a range ends before it begins"
                fault = document.fault("envelope-range", message, *at, "ranges", limit, got=shown([low, high]), allowed="[from, to]")  # fmt: skip
                faults.add(fault)
        for option, value in settings.options.items():
            _check_option(document, (*at, "options", option), operator, option, value, faults)
        _check_spans(document, at, operator, settings, faults)


def _check_spans(
    document: Document, at: tuple[PathPart, ...], operator: Operator, settings: Settings, faults: Faults
) -> None:
    """Two options that are the ends of one span: the first is not beyond the second, defaults counted in."""
    spans: Sequence[tuple[str, str]] = getattr(operator, "spans", ())
    for first, last in spans:
        given = next((option for option in (last, first) if option in settings.options), None)
        ends = [settings.options.get(option, operator.options[option]) for option in (first, last)]
        if given is None or not all(_is_like(end, operator.options[first]) for end in ends) or ends[0] <= ends[1]:
            continue
        message = f"`{first}` of {operator.name} is beyond `{last}`"
        got, allowed = f"{first} {shown(ends[0])}, {last} {shown(ends[1])}", f"{first} up to {last}"
        faults.add(document.fault("envelope-option", message, *at, "options", given, got=got, allowed=allowed))


def _check_count(document: Document, at: tuple[PathPart, ...], settings: Settings, faults: Faults) -> None:
    count = settings.count
    if count is None:
        return
    low, high = count
    if not (isinstance(low, int) and isinstance(high, int) and 0 <= low <= high):
        message = "a count is two whole numbers, from and to"
        faults.add(document.fault("envelope-count", message, *at, "count", got=shown(count), allowed="[1, 3], say"))


def _check_allow(document: Document, at: tuple[PathPart, ...], settings: Settings, faults: Faults) -> None:
    """`allow: []` would read as "nothing" and mean "all"; it is told from no `allow` by the document alone."""
    value: Any = document.value
    for key in at:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict) and value.get("allow") == []:
        message, hint = "`allow` names nothing", "leave `allow` out if all targets are open, or the operator if none is"
        faults.add(document.fault("envelope-target", message, *at, "allow", got="[]", allowed="names or patterns of targets", hint=hint))  # fmt: skip


def _check_option(
    document: Document, at: tuple[PathPart, ...], operator: Operator, option: str, value: Any, faults: Faults
) -> None:
    if option not in operator.options:
        message = f"the operator {operator.name} has no option `{option}`"
        hint = did_you_mean(option, operator.options) or "remove it"
        fault = document.fault("envelope-option", message, *at, key=True, got=option, allowed=listed(operator.options), hint=hint)  # fmt: skip
        faults.add(fault)
        return
    default = operator.options[option]
    wanted = _form(default)
    if not _is_like(value, default):
        message = f"`{option}` of {operator.name} is of another type"
        hint = f"the default is {shown(default)}"
        faults.add(document.fault("envelope-option", message, *at, got=shown(value), allowed=wanted, hint=hint))
        return
    _check_values(document, at, operator, option, value, faults)


def _check_values(
    document: Document, at: tuple[PathPart, ...], operator: Operator, option: str, value: Any, faults: Faults
) -> None:
    """Faults of the values of an option, or of the members of its list: those that the operator does not allow."""
    own: Mapping[str, Sequence[Any]] = getattr(operator, "allowed", {})
    patterns: Mapping[str, str] = getattr(operator, "patterns", {})
    bounds: Mapping[str, tuple[float, float]] = getattr(operator, "bounds", {})
    if option in bounds and not bounds[option][0] <= value <= bounds[option][1]:
        message = f"`{option}` of {operator.name} is out of range"
        faults.add(document.fault("envelope-option", message, *at, got=shown(value), allowed="from {} to {}".format(*bounds[option])))  # fmt: skip
        return
    allowed, pattern = own.get(option, _ALLOWED.get(option)), patterns.get(option)
    members = value if isinstance(value, list) else [value]
    for index, member in enumerate(members):
        place = (*at, index) if isinstance(value, list) else at
        if allowed is not None and member not in allowed:
            message = f"`{option}` of {operator.name} has no such value"
            hint = did_you_mean(member, [one for one in allowed if isinstance(one, str)])
            faults.add(document.fault("envelope-option", message, *place, got=shown(member), allowed=listed(map(str, allowed)), hint=hint))  # fmt: skip
        elif pattern is not None and not re.fullmatch(pattern, member):
            message = f"`{option}` of {operator.name} cannot be that"
            faults.add(document.fault("envelope-option", message, *place, got=shown(member), allowed=pattern))
    if allowed is not None and not members:
        message = f"`{option}` of {operator.name} names nothing"
        faults.add(document.fault("envelope-option", message, *at, got="[]", allowed=listed(map(str, allowed))))


def _is_like(value: Any, default: Any) -> bool:
    """Whether an option's value is of the type of its default; the members of a list are all like its first, texts where
    it is empty."""
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, (int, float)):
        return isinstance(value, (int, float)) and (isinstance(default, float) or isinstance(value, int))
    if isinstance(default, (list, tuple)):
        return isinstance(value, list) and all(_is_like(member, default[0] if default else "") for member in value)
    return isinstance(value, type(default))


def _form(default: Any) -> str:
    if isinstance(default, (list, tuple)):
        return f"list of {type_name(default[0] if default else '')}s"
    return type_name(default)


def check_for(
    bundle: Bundle,
    document: Document,
    envelope: Envelope,
    operators: Mapping[str, Operator],
    gold_skills: Mapping[str, Sequence[str]],
    faults: Faults,
) -> None:
    """Faults of an envelope for one harness: patterns that name nothing, ranges that its limits do not have, and gold
    skills singled out for masking (`gold_skills`: skill to the families whose gold loads it)."""
    draft = _empty_draft(bundle)
    for name, settings in envelope.operators.items():
        _check_ranges(bundle, document, name, settings, faults)
        _check_choices(bundle, document, operators[name], settings, faults)
        if settings.allow or settings.deny:
            _check_patterns(bundle, document, operators[name], settings, draft, faults)
    masking = envelope.operators.get(SKILL_MASK)
    if masking is not None and masking.rate > 0:
        _check_gold(bundle, document, masking, gold_skills, faults)


def _check_ranges(bundle: Bundle, document: Document, name: str, settings: Settings, faults: Faults) -> None:
    limits = bundle.state.limits
    written = written_out(bundle.state) if settings.ranges else {}
    for limit, (low, high) in settings.ranges.items():
        at = ("operators", name, "ranges", limit)
        known = limits.get(limit)
        movable = [name for name, found in limits.items() if found.range is not None]
        if known is None or known.range is None:
            what = "has no limit of this name" if known is None else "gives this limit no range to move in"
            hint = did_you_mean(limit, movable) or f"give it one under `limits` of {bundle.name}"
            faults.add(document.fault("envelope-range", f"the harness {bundle.name} {what}", *at, key=True, got=limit, allowed=listed(movable), hint=hint))  # fmt: skip
        elif limit in written:
            message = f"the number of this limit is written out in {bundle.name} where it cannot follow"
            hint = "write the text without the number, or give the rule or item `limit=`"
            faults.add(document.fault("envelope-range", message, *at, key=True, got=f"{format_number(known.value)} at {written[limit]}", allowed=listed(name for name in movable if name not in written), hint=hint))  # fmt: skip
        elif low < known.range[0] or high > known.range[1]:
            message = f"the range leaves that of the limit in {bundle.name}"
            allowed = f"from {format_number(known.range[0])} to {format_number(known.range[1])}"
            faults.add(document.fault("envelope-range", message, *at, got=shown([low, high]), allowed=allowed))
        elif low <= high and isinstance(known.value, int) and math.ceil(low) > math.floor(high):
            message = f"the limit is a whole number in {bundle.name}, and the range holds none"
            faults.add(document.fault("envelope-range", message, *at, got=shown([low, high]), allowed="whole numbers"))


def _check_choices(bundle: Bundle, document: Document, operator: Operator, settings: Settings, faults: Faults) -> None:
    """Members of options that name nothing of the harness: `choices` of an operator says what there is, by option."""
    choices: Callable[[HarnessState], Mapping[str, Sequence[str]]] | None = getattr(operator, "choices", None)
    if choices is None or not settings.options:
        return
    for option, names in choices(bundle.state).items():
        for index, pattern in enumerate(settings.options.get(option, ())):
            if not any(fnmatchcase(name, pattern) for name in names):
                message = f"`{option}` of {operator.name} names nothing in {bundle.name}"
                at = ("operators", operator.name, "options", option, index)
                faults.add(document.fault("envelope-option", message, *at, got=shown(pattern), allowed=listed(names), hint=did_you_mean(pattern, names)))  # fmt: skip


def _check_patterns(
    bundle: Bundle, document: Document, operator: Operator, settings: Settings, draft: Draft, faults: Faults
) -> None:
    targets = list(operator.targets(draft))
    fits = True
    for field, patterns in (("allow", settings.allow), ("deny", settings.deny)):
        for index, pattern in enumerate(patterns):
            if not any(fnmatchcase(target, pattern) for target in targets):
                fits = False
                message = f"the pattern names no target of {operator.name} in {bundle.name}"
                hint = _pinned_hint(pattern, draft) or did_you_mean(pattern, targets)
                got = pattern if pattern.strip() else shown(pattern)
                faults.add(document.fault("envelope-target", message, "operators", operator.name, field, index, got=got, allowed=listed(targets), hint=hint))  # fmt: skip
    if fits and settings.rate > 0 and not any(allows(settings, target) for target in targets):
        message = f"`deny` leaves {operator.name} no target in {bundle.name}"
        hint = "deny less, or leave the operator out"
        faults.add(document.fault("envelope-target", message, "operators", operator.name, "deny", got=shown(settings.deny), allowed=listed(targets), hint=hint))  # fmt: skip


def _pinned_hint(pattern: str, draft: Draft) -> str:
    pinned = [name for name in (*draft.facts.pinned_skills, *draft.facts.pinned_rules) if fnmatchcase(name, pattern)]
    return f"{pinned[0]} must stay: it is protected, or something that stays names or requires it" if pinned else ""


def _check_gold(
    bundle: Bundle, document: Document, settings: Settings, gold_skills: Mapping[str, Sequence[str]], faults: Faults
) -> None:
    skills = [skill.name for skill in bundle.state.skills]
    for index, pattern in enumerate(settings.allow):
        named = [name for name in skills if fnmatchcase(name, pattern)]
        named = [name for name in named if not any(fnmatchcase(name, denied) for denied in settings.deny)]
        if not named or not all(name in gold_skills for name in named):
            continue
        families = list(dict.fromkeys(family for name in named for family in gold_skills[name]))
        message = f"the envelope would mask {listed(named)}, which {'is' if len(named) == 1 else 'are'} gold"
        free = [name for name in skills if name not in gold_skills]
        hint = (
            f"gold of the families {listed(families)}; allow others, or leave `allow` out: what a sample needs is kept"
        )
        faults.add(document.fault("envelope-gold", message, "operators", SKILL_MASK, "allow", index, got=pattern, allowed=listed(free), hint=hint))  # fmt: skip


class _Silent:
    """A rewriter that is only there: nothing is reworded to ask for targets."""

    name = "rules"

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        return ()


def _empty_draft(bundle: Bundle) -> Draft:
    facts = Parent(bundle.state)
    names = NameMaker(facts.words)
    return Draft(state=bundle.state, facts=facts, names=names, rewriter=_Silent(), seed=0, number=0)
