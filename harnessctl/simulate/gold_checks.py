"""Gold checks: whether the gold of a family fits the harness that it is for, over every row that can be drawn.

What always holds after them: gold names skills and tools that are there, its calls fit their schemas, its replies fit
the harness's `reply_max_chars`, say every fact and make no claim, and its end states are of tables that tools can write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
import orjson

from harnessctl.bundle.state import HarnessState
from harnessctl.errors import Faults
from harnessctl.manifests.load import PathPart
from harnessctl.manifests.specs.families import GoldCall
from harnessctl.manifests.violations import did_you_mean, shown
from harnessctl.score.phrases import Said
from harnessctl.simulate.families import LoadedFamily, Row, shown_row
from harnessctl.simulate.slots import Template

REPLY_LIMIT = "reply_max_chars"
#: Stops after which something was said.
_SAID = ("replied", "refused")


class GoldChecks:
    """The checks for one harness; schemas are compiled once. `mutable` are the tables that tools can write to."""

    def __init__(
        self, state: HarnessState, columns: Mapping[str, Sequence[str]], mutable: Sequence[str], *, can_fail: bool
    ) -> None:
        self._skills = {skill.name: skill for skill in state.skills}
        self._tools = {tool.name: tool for tool in state.tools}
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        self._needs_reply_skill = state.require_skill == "reply"
        limit = state.limits.get(REPLY_LIMIT)
        self._limit = limit.value if limit is not None else None
        self._columns = columns
        self._mutable = mutable
        self._can_fail = can_fail
        inputs: dict[str, Any] = state.prompt.inputs.get("properties", {})
        self._inputs = {name: jsonschema_rs.validator_for(schema) for name, schema in inputs.items()}

    def check(self, family: LoadedFamily, faults: Faults) -> None:
        """Add a fault for each thing in a family's gold that does not fit; its rows have been drawn."""
        before = len(faults.items)
        self._check_skills(family, faults)
        for call, at in _calls(family):
            self._check_call(family, call, at, faults)
        gold = family.spec.gold
        for number, fact in enumerate(gold.facts):
            if fact.source is not None and self._check_tool(family, fact.source, at := ("gold", "facts", number, "source"), faults):  # fmt: skip
                called = dict.fromkeys(call.tool for call, _ in _calls(family))
                if fact.source not in called:
                    faults.add(family.fault("family-fact", "no call of gold is of the tool that tells the fact", *at,
                                            got=fact.source, allowed=", ".join(called) or "no source"))  # fmt: skip
        self._check_end_states(family, faults)
        self._check_context(family, faults)
        if len(faults.items) == before:
            self._check_texts(family, faults)

    def _check_skills(self, family: LoadedFamily, faults: Faults) -> None:
        gold = family.spec.gold
        for part, names in (("skills", gold.skills), ("strategies", gold.strategies)):
            for number, name in enumerate(names):
                if name not in self._skills:
                    faults.add(family.fault("family-skill", f"the harness {family.harness} has no such skill", "gold",
                                            part, number, got=name, allowed=", ".join(self._skills),
                                            hint=did_you_mean(name, self._skills)))  # fmt: skip
        kinds = [self._skills[name].kind for name in gold.skills if name in self._skills]
        if self._needs_reply_skill and gold.stop == "replied" and "reply" not in kinds and len(kinds) == len(gold.skills):  # fmt: skip
            faults.add(family.fault("family-skill", f"the harness {family.harness} wants a Reply Skill before a reply",
                                    "gold", got=", ".join(gold.skills) or "no skill",
                                    allowed="a skill of kind reply under `skills`"))  # fmt: skip

    def _check_tool(self, family: LoadedFamily, name: str, at: tuple[PathPart, ...], faults: Faults) -> bool:
        if name in self._tools:
            return True
        faults.add(family.fault("family-tool", f"the harness {family.harness} has no such tool", *at, got=name,
                                allowed=", ".join(self._tools), hint=did_you_mean(name, self._tools)))  # fmt: skip
        return False

    def _check_call(self, family: LoadedFamily, call: GoldCall, at: tuple[PathPart, ...], faults: Faults) -> None:
        if not self._check_tool(family, call.tool, (*at, "tool"), faults):
            return
        tool = self._tools[call.tool]
        for number, name in enumerate(call.compare or ()):
            if name not in call.arguments:
                faults.add(family.fault("family-argument", "an argument that is compared is not given", *at, "compare",
                                        number, got=name, allowed=", ".join(call.arguments) or "none is given",
                                        hint=did_you_mean(name, call.arguments)))  # fmt: skip
        if call.tool not in self._validators:
            self._validators[call.tool] = jsonschema_rs.validator_for(tool.parameters)
        validator = self._validators[call.tool]
        template = Template(call.arguments)
        seen: set[bytes] = set()
        for row in family.rows if template.names else family.rows[:1]:
            args = template.fill(row)
            key = orjson.dumps(args, default=str)
            if key in seen:
                continue
            seen.add(key)
            for error in validator.iter_errors(args):
                where = list(error.instance_path)
                faults.add(family.fault("family-argument", f"the arguments do not fit `{call.tool}`: {error.message}",
                                        *at, "arguments", *where, got=shown(args),
                                        hint=shown_row(row) if template.names else ""))  # fmt: skip
                return

    def _check_end_states(self, family: LoadedFamily, faults: Faults) -> None:
        for number, end in enumerate(family.spec.gold.end_state):
            at = ("gold", "end_state", number)
            if end.table not in self._columns:
                faults.add(family.fault("family-end-state", "the world has no such table", *at, "table", got=end.table,
                                        allowed=", ".join(self._columns),
                                        hint=did_you_mean(end.table, self._columns)))  # fmt: skip
                continue
            if end.table not in self._mutable:
                faults.add(family.fault("family-end-state", "no tool can change this table: it is not mutable", *at,
                                        "table", got=end.table, allowed=", ".join(self._mutable)))  # fmt: skip
            for part, values in (("where", end.where), ("values", end.values)):
                for name in values:
                    if name not in self._columns[end.table]:
                        known = self._columns[end.table]
                        faults.add(family.fault("family-end-state", f"the table {end.table} has no such column", *at,
                                                part, name, key=True, got=name, allowed=", ".join(known),
                                                hint=did_you_mean(name, known)))  # fmt: skip

    def _check_context(self, family: LoadedFamily, faults: Faults) -> None:
        for name, value in family.spec.context.items():
            validator = self._inputs.get(name)
            template = Template(value)
            for row in (family.rows if template.names else family.rows[:1]) if validator is not None else ():
                filled = template.fill(row)
                error = next(validator.iter_errors(filled), None) if validator is not None else None
                if error is not None:
                    faults.add(family.fault("family-context", f"it does not fit the prompt's input: {error.message}",
                                            "context", name, key=True, got=shown(filled), hint=shown_row(row)))  # fmt: skip
                    break

    def _check_texts(self, family: LoadedFamily, faults: Faults) -> None:
        gold = family.spec.gold
        if gold.stop not in _SAID or gold.route == "silent":
            return
        calls = bool(gold.calls or gold.optional or gold.alternatives)
        for part, texts, needed in (
            ("replies", family.replies, True),
            ("fallbacks", family.fallbacks, self._can_fail and calls),
        ):
            for language, rows in family.by_language.items():
                if needed and not texts.get(language):
                    faults.add(family.fault("family-language", f"gold has no {part} in a language that viewers write",
                                            "gold", part, got=", ".join(texts) or "none", allowed=language,
                                            hint="" if part == "replies" else "they are said when a tool fails for good"))  # fmt: skip
                for number, template in enumerate(texts.get(language, ())):
                    self._check_text(family, part, language, number, template, rows, faults)

    def _check_text(
        self,
        family: LoadedFamily,
        part: str,
        language: str,
        number: int,
        template: Template,
        rows: Sequence[Row],
        faults: Faults,
    ) -> None:
        """At most one fault of each kind for a text, at the first row that shows it."""
        facts = [Template(fact.any, texts=True) for fact in family.spec.gold.facts] if part == "replies" else []
        claims = Template(family.spec.gold.claims, texts=True)
        names = set(template.names).union(claims.names, *(fact.names for fact in facts))
        found: dict[str, tuple[str, str, str]] = {}
        for row in _unlike(rows, names):
            text = template.fill(row)
            if self._limit is not None and len(text) > self._limit:
                found.setdefault("family-length", (f"it is longer than {REPLY_LIMIT} allows", f"{len(text)} characters: {shown(text)}", f"{self._limit:g}"))  # fmt: skip
            said = Said(text)
            claim = next((claim for claim in claims.fill(row) if said.says(claim)), None)
            if claim is not None:
                found.setdefault("family-claim", ("it makes a claim that must not be made", shown(text), f"without {shown(claim)}"))  # fmt: skip
            for fact in facts:
                ways = fact.fill(row)
                if not any(said.says(way) for way in ways):
                    found.setdefault("family-fact", ("it does not say a fact", shown(text), " | ".join(ways)))
        for code, (message, got, allowed) in found.items():
            faults.add(family.fault(code, message, "gold", part, language, number, got=got, allowed=allowed))


def _calls(family: LoadedFamily) -> Iterator[tuple[GoldCall, tuple[PathPart, ...]]]:
    gold = family.spec.gold
    for part, calls in (("calls", gold.calls), ("optional", gold.optional)):
        for number, call in enumerate(calls):
            yield call, ("gold", part, number)
    for number, way in enumerate(gold.alternatives):
        for inner, call in enumerate(way):
            yield call, ("gold", "alternatives", number, inner)


def _unlike(rows: Sequence[Row], names: set[str]) -> Iterator[Row]:
    """The rows that differ in the columns of these names."""
    if not names:
        yield from rows[:1]
        return
    key: Callable[[Row], Any] = lambda row: tuple(str(row[name]) for name in sorted(names))  # noqa: E731
    seen: set[Any] = set()
    for row in rows:
        mark = key(row)
        if mark not in seen:
            seen.add(mark)
            yield row
