"""Instructions: valid constraints that are put into a prompt, each with the rubric that checks it [C.3].

What always holds: of an item's instructions no two take the same place of the reply; each can be kept to together with gold,
within the limits of the harness, and most right replies do not keep to it by themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harnessctl.augment.stream import Stream
from harnessctl.manifests.packaged import packaged_yaml
from harnessctl.records.scenario import Gold
from harnessctl.records.task import Instruction
from harnessctl.score.instructions import fault
from harnessctl.simulate.obeying import keeps, obeyed

#: How much longer than every right reply a reply is to be at least.
_LONGER = (8, 20)


@dataclass(slots=True, frozen=True)
class Template:
    """An instruction in one language."""

    id: str
    category: str
    slots: frozenset[str]
    say: str
    check: dict[str, Any]


@dataclass(slots=True, frozen=True)
class Given:
    """An instruction of an item: what the prompt says, and what checks it."""

    template: Template
    text: str
    rubric: Instruction


@functools.cache
def templates(language: str) -> tuple[Template, ...]:
    """The instructions of a language (`zh-Hans` is `zh`; others take English)."""
    spoken = "zh" if language.startswith("zh") else "en"
    return tuple(
        Template(
            entry["id"], entry["category"], frozenset(entry["slots"]), entry[spoken]["say"], entry[spoken]["check"]
        )
        for entry in _file()
        if spoken in entry
    )


def _file() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = packaged_yaml(__file__, "instructions.yaml")["instructions"]
    return found


def chosen(gold: Gold, language: str, count: int, most: float | None, stream: Stream) -> list[Given] | None:
    """`count` instructions that one right reply at least can keep to together; null where there are not so many.

    `most` is the harness's bound on a reply. At most one is of a category, so that levels differ in kind and not in
    number alone.
    """
    taken: list[Given] = []
    for template in stream.shuffled(templates(language)):
        if len(taken) == count:
            break
        if any(
            given.template.slots & template.slots or given.template.category == template.category for given in taken
        ):
            continue
        given = _given(template, gold, len(taken) + 1, count, stream)
        if given is not None and is_reachable([*taken, given], gold, language, most):
            taken.append(given)
    return taken if len(taken) == count else None


def is_reachable(asked: Sequence[Given], gold: Gold, language: str, most: float | None) -> bool:
    """Whether a right reply, brought into the form that is asked, keeps to all of it within the bound; a fallback, where gold
    has some, has to stay within the bound as well."""
    rubrics = [given.rubric for given in asked]
    bound = float("inf") if most is None else most
    replies = [obeyed(text, rubrics, language) for text in gold.replies]
    fallbacks = [obeyed(text, rubrics, language) for text in gold.fallbacks]
    is_sayable = not fallbacks or min(map(len, fallbacks)) <= bound
    return is_sayable and any(keeps(text, rubrics) and len(text) <= bound for text in replies)


def _given(template: Template, gold: Gold, number: int, of: int, stream: Stream) -> Given | None:
    """The instruction for one gold; null where most right replies keep to it anyway, or it has nothing to bite on."""
    ((kind, values),) = template.check.items()
    filled = dict(values)
    sizes = [len(text) for text in gold.replies]
    if filled.get("most") == "shortest":
        filled["most"] = min(sizes)
    if filled.get("least") == "longer":
        filled["least"] = max(sizes) + stream.integer(*_LONGER)
    name = "FI" if of == 1 else f"FI-{number}"
    rubric = msgspec.convert({"check": kind, "id": name, **filled}, Instruction)
    kept = sum(not fault(text, rubric) for text in gold.replies)
    if 2 * kept > len(gold.replies):
        return None
    numbers = {key: value for key, value in filled.items() if isinstance(value, int)}
    return Given(template, template.say.format(**numbers), rubric)
