"""Users: which skills and rules name which others, and so what may be left out and what must stay.

What always holds: a rule is pinned when it is protected, when a text that stays mentions it, when a pinned rule
requires or mentions it, or when a rule beside it speaks of rules by their place. What only other rules use may go once those have gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from harnessctl.augment.once import once
from harnessctl.augment.words import strings_in
from harnessctl.bundle.state import HarnessState, Rule, Skill
from harnessctl.bundle.text import Ref, Text

_RULES = r"(?:rules?|steps?|points?|items?|bullets?|instructions?)"
_ORDINAL = r"(?:previous|preceding|next|following|first|second|third|fourth|fifth|last|above|below)"
#: A rule that is meant by where it stands: `the rule above`, `step 2`, 上一条. One that is meant by its id is a reference.
_BY_PLACE = re.compile(
    rf"\b(?:the|this|these|those|both|all) (?:\w+ )?{_RULES} (?:above|below|before|after)\b(?! (?:you|it|any|the|a|an)\b| \d)"
    rf"|\bthe (?:two |three )?{_ORDINAL} (?:two |three |\d+ )?(?:rules?|steps?|bullets?|instructions?)\b"
    rf"|\b(?:rule|step|bullet|instruction)s? \d+\b"
    r"|\bas (?:said|stated|described|noted|mentioned|explained|listed) (?:above|below|before)\b"
    r"|上一条|下一条|前一条|后一条|上述规则|以上规则|以下规则|上述步骤|第[一二三四五六七八九十\d]+(?:条规则|条|步)",
    re.IGNORECASE,
)


def refs(text: Text, kind: str) -> Iterator[str]:
    """The names that the references of a kind in `text` have."""
    return (part.name for part in text if isinstance(part, Ref) and part.kind == kind)


@once
def skill_users(state: HarnessState) -> Mapping[str, frozenset[str]]:
    """By skill: the other skills whose texts or examples name it."""
    names = {skill.name for skill in state.skills}
    found: dict[str, set[str]] = {}
    for skill in state.skills:
        texts = [skill.description, *(part.text for part in skill.body), *(rule.text for rule in skill.rules)]
        texts += _example_texts(skill)
        used = {name for text in texts for name in refs(text, "skill")}
        calls = (call for example in skill.examples for message in example for call in message.calls)
        used.update(text for call in calls for text in strings_in(call.get("arguments")) if text in names)
        for name in used - {skill.name}:
            found.setdefault(name, set()).add(skill.name)
    return {name: frozenset(users) for name, users in found.items()}


@once
def rule_users(state: HarnessState) -> Mapping[str, tuple[str, ...]]:
    """By `owner#rule`: the ids of the rules of the same owner that require or mention it."""
    found: dict[str, tuple[str, ...]] = {}
    for owner, rules in _owners(state):
        for rule in rules:
            for name in dict.fromkeys(_used(rule)):
                key = f"{owner}#{name}"
                found[key] = (*found.get(key, ()), rule.id)
    return found


@once
def pinned_rules(state: HarnessState) -> frozenset[str]:
    """`skill#rule` and `block#item` that are never masked."""
    found: set[str] = set()
    for skill in state.skills:
        stays = [skill.description, *(part.text for part in skill.body), *_example_texts(skill)]
        found |= _pinned(skill.name, skill.rules, stays)
    for block in state.prompt.blocks:
        found |= _pinned(block.id, block.items, [block.heading])
    by_place = told_by_place(state)
    found.update(f"{owner}#{rule.id}" for owner, rules in _owners(state) if owner in by_place for rule in rules)
    return frozenset(found)


@once
def told_by_place(state: HarnessState) -> frozenset[str]:
    """Skills and blocks of which a rule or item speaks of others by where they stand: to move or to leave out one of them
    would make it speak of another."""
    return frozenset(
        owner
        for owner, rules in _owners(state)
        if any(_BY_PLACE.search(part) for rule in rules for part in rule.text if isinstance(part, str))
    )


@once
def maskable_rules(state: HarnessState) -> Mapping[str, str]:
    """`skill#rule` to its skill, for rules that may be left out, users before what they use.

    A rule that tells a limit stays, and rules that use each other in a circle.
    """
    pinned, users = pinned_rules(state), rule_users(state)
    found: dict[str, str] = {}
    for skill in state.skills:
        left = {
            rule.id: f"{skill.name}#{rule.id}"
            for rule in skill.rules
            if rule.limit is None and f"{skill.name}#{rule.id}" not in pinned
        }
        while free := [rule for rule, key in left.items() if not any(user in left for user in users.get(key, ()))]:
            found |= {left.pop(rule): skill.name for rule in free}
    return found


def required_by(state: HarnessState, rules: Iterable[str]) -> set[str]:
    """`rules` (`owner#rule`) with everything that they require."""
    needed = _requires(state)
    found: set[str] = set()
    for rule in rules:
        at: str | None = rule
        while at is not None and at not in found:
            found.add(at)
            at = needed.get(at)
    return found


@once
def _requires(state: HarnessState) -> Mapping[str, str]:
    return {
        f"{owner}#{rule.id}": f"{owner}#{rule.requires}"
        for owner, rules in _owners(state)
        for rule in rules
        if rule.requires is not None
    }


def _owners(state: HarnessState) -> Iterator[tuple[str, list[Rule]]]:
    yield from ((skill.name, skill.rules) for skill in state.skills)
    yield from ((block.id, block.items) for block in state.prompt.blocks)


def _used(rule: Rule) -> list[str]:
    mentioned = [name for name in refs(rule.text, "rule") if name != rule.id]
    return [*mentioned, rule.requires] if rule.requires is not None else mentioned


def _pinned(owner: str, rules: list[Rule], stays: Iterable[Text]) -> set[str]:
    uses = {rule.id: _used(rule) for rule in rules}
    waiting = [rule.id for rule in rules if rule.protected]
    waiting += [name for text in stays for name in refs(text, "rule")]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += uses.get(name, ())
    return {f"{owner}#{name}" for name in found}


def _example_texts(skill: Skill) -> Iterator[Text]:
    return (message.content for example in skill.examples for message in example)
