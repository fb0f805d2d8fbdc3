"""SkillPool: skills that a variant may offer besides those of its parent, written as the parent writes its own.

What always holds: a skill of the pool names nothing (no tool, skill, rule or limit) and has no number; its kind is one
that the parent has; none has in its name a word that the name or description of a skill of the parent has. The texts are in `skill_pool.yaml`.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from harnessctl.augment.languages import Language, languages
from harnessctl.augment.once import once
from harnessctl.augment.operator import Dimension, Draft, Settings, Stage
from harnessctl.augment.stream import Stream
from harnessctl.augment.words import parts_of, words_of
from harnessctl.bundle.state import HarnessState, Part, Rule, Skill
from harnessctl.bundle.text import Text
from harnessctl.manifests.packaged import packaged_yaml

PoolName = Literal["synthetic", "noise"]
#: How many rules a skill of the pool has, from and to.
RULES = (3, 5)
#: A harness whose descriptions are shorter than this at the median (characters; a Chinese one counts double) describes
#: skills in a few words.
_SHORT_CHARS = 40
#: The heading right above a list of rules; one with a number or a code span in it is of its own skill alone.
_HEADING = re.compile(r"(?m)^#{1,4} [^\n`\d]{1,40}\n+\Z")


class Entry(NamedTuple):
    """A skill of the pool in one language; `rules` are those of its own subject."""

    name: str
    kind: Literal["reply", "strategy"]
    short: str
    description: str
    lead: str
    rules: list[str]


@dataclass(slots=True, frozen=True)
class Style:
    """How the parent writes a skill: `head` stands before the rules, `is_short` its descriptions, `has_lead` a sentence
    before the heading."""

    language: Language
    head: str
    marker: Literal["-", "1."]
    is_short: bool
    has_lead: bool


def _file() -> dict[str, Any]:
    found: dict[str, Any] = packaged_yaml(__file__, "skill_pool.yaml")
    return found


@functools.cache
def entries(pool: PoolName, language: Language) -> tuple[Entry, ...]:
    """The skills of a pool in a language."""
    out: list[Entry] = []
    for entry in _file()[pool]:
        short, description, lead, *rules = entry[language]
        out.append(Entry(entry["name"], entry["kind"], short, description, lead, rules))
    return tuple(out)


class PoolOperator:
    """An operator that puts skills of a pool among the others, at random places. Target: `skills`; `count` is how many,
    from and to, where the envelope says nothing.

    They are on offer and that is all: no gold names one, so that an agent that chooses by what a skill is for scores as
    before.
    """

    dimension: Dimension = "skill-identifier"
    stage: Stage = "add"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset({"count"})

    def __init__(self, name: str, pool: PoolName, count: tuple[int, int]) -> None:
        self.name = name
        self._pool: PoolName = pool
        self._count = count

    def targets(self, draft: Draft) -> Sequence[str]:
        """The list of skills, where there is one."""
        return ("skills",) if draft.state.skills else ()

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        """False when none of the pool is left."""
        low, high = (int(bound) for bound in settings.count or self._count)
        style = style_of(draft.state)
        changes = draft.changes
        here = {skill.name for skill in changes.added_skills}
        open_to = [entry for entry in _fitting(draft.state)[self._pool] if entry.name not in here]
        drawn = stream.shuffled(open_to)[: stream.integer(low, high)]
        if not drawn:
            return False
        order = list(changes.skill_order) or [
            skill.name
            for skill in (*draft.state.skills, *changes.added_skills)
            if skill.name not in changes.masked_skills
        ]
        for entry in drawn:
            skill = _skill(draft.names.wished("skill", entry.name, stream), entry, style, stream)
            changes.added_skills.append(skill)
            order.insert(stream.integer(0, len(order)), skill.name)
        changes.skill_order = order
        return True


def _skill(name: str, entry: Entry, style: Style, stream: Stream) -> Skill:
    count = stream.integer(*RULES)
    common: list[str] = _file()["common"][style.language]
    own = stream.shuffled(entry.rules)[:count]
    texts = own + [stream.choice(common)] * (count > len(own))
    rules = [Rule(id=f"r{number}", text=[text]) for number, text in enumerate(texts, 1)]
    head = f"{entry.lead}\n\n{style.head}" if style.has_lead else style.head
    return Skill(
        name=name,
        kind=entry.kind,
        description=[entry.short if style.is_short else entry.description],
        body=[Part(text=[head]), Part(rules=[rule.id for rule in rules], marker=style.marker)],
        rules=rules,
    )


@once
def _fitting(state: HarnessState) -> dict[PoolName, list[Entry]]:
    """The skills of each pool whose kind the state has and whose subject it does not."""
    language = languages(state)[0]
    kinds = {skill.kind for skill in state.skills}
    subjects = {part for skill in state.skills for part in parts_of(skill.name)}
    subjects |= {word for skill in state.skills for word in words_of(_plain(skill.description))}
    pools: tuple[PoolName, ...] = ("synthetic", "noise")
    return {
        pool: [
            entry
            for entry in entries(pool, language)
            if entry.kind in kinds and subjects.isdisjoint(parts_of(entry.name))
        ]
        for pool in pools
    }


@once
def style_of(state: HarnessState) -> Style:
    """How the skills of `state` are written, most of them."""
    heads: list[str] = []
    leads = 0
    markers: list[Literal["-", "1."]] = []
    for skill in state.skills:
        before = ""
        for part in skill.body:
            if part.rules:
                heading = _HEADING.search(before)
                if heading is not None:
                    heads.append(heading[0])
                    leads += bool(before[: heading.start()].strip())
                markers.append(part.marker)
                break
            before += _plain(part.text)
    language = languages(state)[0]
    lengths = [len(_plain(skill.description)) for skill in state.skills] or [2 * _SHORT_CHARS]
    head = "## 规则\n\n" if language == "zh" else "## Rules\n\n"
    return Style(
        language=language,
        head=(statistics.mode(heads) if heads else "") or head,
        marker=statistics.mode(markers) if markers else "-",
        is_short=statistics.median(lengths) * (2 if language == "zh" else 1) < _SHORT_CHARS,
        has_lead=not heads or 2 * leads > len(heads),
    )


def _plain(text: Text) -> str:
    return "".join(part if isinstance(part, str) else part.name for part in text)
