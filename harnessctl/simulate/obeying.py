"""Obeying: what a task asks besides gold, done: a right reply in the form that instructions want, and calls in their order.

What always holds: a text to which nothing is asked stays as it is; what is added says no fact, no number, no claim. A text
that cannot be brought into the form comes out as near to it as it goes; `keeps` says whether it is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from harnessctl.records.gold_call import GoldCall
from harnessctl.records.scenario import Scenario
from harnessctl.records.task import (
    Avoids,
    Begins,
    Ends,
    Instruction,
    Length,
    Lines,
    Lowercase,
    Marks,
    Mentions,
    Ordered,
    Rubric,
    Sentences,
    Wrapped,
    metric_of,
)
from harnessctl.score.calls import LOAD_SKILL
from harnessctl.score.instructions import fault, has, sentences
from harnessctl.simulate.steps import Plan, Step

#: Sentences that fill a reply up: of no fact, no number, no promise.
FILLERS = {
    "en": ("Take your time and look around.", "There is no hurry at all.", "We go on in a moment.",
           "Stay as long as you like.", "The stream goes on for a while."),
    "zh": ("慢慢看，不着急哦。", "我们一会儿继续。", "想看多久都行。", "大家随意逛逛。", "直播会再播一阵子。"),
}  # fmt: skip
#: What is said in the place of words that are not to be said.
SAID_INSTEAD: dict[str, tuple[tuple[str, str], ...]] = {
    "link": (
        (r"\blinks? (?=\d)", "number "),
        (r"\blink\b", "page"),
        (r"\bLink (?=\d)", "Number "),
        (r"\bLink\b", "Page"),
    ),
    "yuan": ((r"\byuan\b", "RMB"),),
    "号": ((r"第?(\d+)号链接", r"链接\1"), (r"(\d+)号", r"链接\1")),
    "元": ((r"(?<=\d)元", "块"),),
}
_SENTENCE_SIGN = re.compile(r"[.!?。！？]+(?=[\s\"'”’」』]*$)")
_STOPS = (".", "!", "?", "。", "！", "？", "…")


def asked_of(scenario: Scenario, ignored: frozenset[str] = frozenset()) -> list[Rubric]:
    """The instructions and orders of a scenario's task, but for those of the metrics `ignored`."""
    if scenario.task is None:
        return []
    return [
        rubric
        for rubric in scenario.task.rubrics
        if isinstance(rubric, (Instruction, Ordered)) and metric_of(rubric.id) not in ignored
    ]


def keeps(text: str, asked: Sequence[Rubric]) -> bool:
    """Whether a reply keeps to every instruction among `asked`."""
    return all(not fault(text, rubric) for rubric in asked if isinstance(rubric, Instruction))


def obeyed(text: str, asked: Sequence[Rubric], language: str) -> str:
    """`text` in the form that the instructions among `asked` want."""
    rules = [rubric for rubric in asked if isinstance(rubric, Instruction)]
    if not rules:
        return text
    spoken = language.partition("-")[0]
    space = "" if spoken == "zh" else " "
    core = [_without(text, rules)]
    core += [_sentence(r.text, spoken) for r in rules if isinstance(r, Mentions) and not has(core[0], r.text)]
    begin = next((rule.text for rule in rules if isinstance(rule, Begins)), "")
    end = next((rule.text for rule in rules if isinstance(rule, Ends)), "")
    fillers = list(FILLERS.get(spoken, FILLERS["en"]))
    said = _finished(begin, core, end, rules, space)
    while fillers and _is_short(said, rules):
        core.append(_without(fillers.pop(0), rules))
        said = _finished(begin, core, end, rules, space)
    return said


def arranged(plan: Plan, scenario: Scenario, asked: Sequence[Rubric], load_skill: str | None) -> Plan:
    """The plan with its calls in the order that is asked; those of it that it lacks are made as gold's optional calls have
    them."""
    for rubric in asked:
        if isinstance(rubric, Ordered):
            plan = _in_order(plan, scenario, rubric, load_skill)
    return plan


def _finished(begin: str, core: Sequence[str], end: str, rules: Sequence[Instruction], space: str) -> str:
    """The parts joined and brought into lines, signs and letters."""
    parts = [*([begin] if begin else []), *core, *([end] if end else [])]
    lines = next((rule.count for rule in rules if isinstance(rule, Lines)), 1)
    if 1 < lines <= len(core):
        first = space.join([*([begin] if begin else []), *core[: len(core) - lines + 1]])
        last = [*core[len(core) - lines + 1 :]]
        if end:
            last[-1] = space.join((last[-1], end))
        text = "\n".join([first, *last])
    else:
        text = space.join(parts)
    for rule in rules:
        if isinstance(rule, Marks):
            text = _marked(text, rule)
    for rule in rules:
        if isinstance(rule, Lowercase):
            text = text.lower()
        elif isinstance(rule, Wrapped):
            text = f"{rule.left}{text}{rule.right}"
    return text


def _is_short(text: str, rules: Sequence[Instruction]) -> bool:
    """Whether something is to be added: a sentence, a line, some characters."""
    for rule in rules:
        if isinstance(rule, Sentences) and len(sentences(text)) < rule.count:
            return True
        if isinstance(rule, Lines) and len(text.splitlines()) < rule.count:
            return True
        if isinstance(rule, Length) and len(text) < rule.least:
            return True
    return False


def _without(text: str, rules: Sequence[Instruction]) -> str:
    for rule in rules:
        for word in rule.texts if isinstance(rule, Avoids) else ():
            for pattern, instead in SAID_INSTEAD.get(word, ()):
                text = re.sub(pattern, instead, text)
    return text


def _sentence(text: str, language: str) -> str:
    if text.endswith(_STOPS):
        return text
    return f"{text}。" if language == "zh" else f"{text[:1].upper()}{text[1:]}."


def _marked(text: str, rule: Marks) -> str:
    """`text` with a sign as often as it is wanted: none, or once, at its end."""
    wide = {",": "，", "!": "！", "?": "？", "，": ",", "！": "!", "？": "?"}.get(rule.mark, "")
    plain, full = (rule.mark, wide) if rule.mark.isascii() else (wide, rule.mark)
    if rule.mark in (",", "，"):
        text = text.replace(plain, "").replace(full, " ")
    else:
        text = text.replace(plain, ".").replace(full, "。")
    if rule.count != 1:
        return text
    is_wide = not text.rstrip()[-1:].isascii()
    sign = full if is_wide and full else plain
    return _SENTENCE_SIGN.sub(sign, text) if _SENTENCE_SIGN.search(text) else f"{text}{sign}"


def _in_order(plan: Plan, scenario: Scenario, rubric: Ordered, load_skill: str | None) -> Plan:
    wanted = [load_skill if name == LOAD_SKILL else name for name in rubric.tools]
    steps = plan.steps
    named: list[Step] = []
    for name in wanted:
        step = next((step for step in steps if step.tool == name), None) or _optional(scenario, name)
        if step is None:
            return plan
        named.append(step)
    others = [step for step in steps if step not in named]
    if rubric.first:
        order = [*named, *others]
    elif rubric.last:
        order = [*others, *named]
    else:
        place = min((steps.index(step) for step in named if step in steps), default=len(steps))
        before = [step for step in steps[:place] if step not in named]
        order = [*before, *named, *(step for step in others if step not in before)]
    return replace(plan, rounds=_rounds(plan, order))


def _rounds(plan: Plan, order: Sequence[Step]) -> tuple[tuple[Step, ...], ...]:
    """The calls in their new order, in as many messages as the plan had; one that it lacked goes with the one before it."""
    of = {id(step): number for number, group in enumerate(plan.rounds) for step in group}
    groups: list[list[Step]] = [[] for _ in plan.rounds] or [[]]
    at = 0
    for step in order:
        at = max(at, of.get(id(step), at))
        groups[at].append(step)
    return tuple(tuple(group) for group in groups if group)


def _optional(scenario: Scenario, tool: str | None) -> Step | None:
    gold = scenario.gold
    found: list[GoldCall] = [] if gold is None else [call for call in gold.optional if call.tool == tool]
    return Step(found[0].tool, found[0].arguments) if found else None
