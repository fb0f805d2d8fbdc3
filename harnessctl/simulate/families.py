"""Families: the files under `simulation.families` of a world, read, with the rows that each family draws.

What always holds: a loaded family has rows, each of its languages has rows and wordings, and every slot is a column of
the row whose value can stand where the slot does. Whether gold fits a harness is checked in `gold_checks`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import Fault, Faults, StorageError
from harnessctl.manifests.load import Document, PathPart, load_yaml
from harnessctl.manifests.locate import inside
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.families import Families, Family
from harnessctl.manifests.specs.world import Simulation
from harnessctl.manifests.violations import did_you_mean
from harnessctl.records.scenario import Gold
from harnessctl.simulate.context import TOO_LONG_HINT, QueryTooLongError, reading_fault
from harnessctl.simulate.slots import SLOT, SlotError, Template
from harnessctl.simulate.world import LiveWorld
from harnessctl.storage import read_bytes

#: A query that gives more rows than this is refused: each of them is checked and kept.
MAX_ROWS = 20_000
#: Shares and weights add up to this at most, so that their sum is exact enough to draw by.
MAX_SHARES = 1e12
#: Columns that say where and by whom a message is written; a request has them as text.
_OF_THE_REQUEST = ("room", "viewer")
#: Parts of gold that are texts, so that a slot alone is written out.
_TEXTS = frozenset({"facts", "claims", "replies", "fallbacks"})

Row = dict[str, Any]


@dataclass
class LoadedFamily:
    """A family with its place and its rows. `by_language` holds the rows that may be drawn in each language."""

    spec: Family
    harness: str
    document: Document
    at: tuple[PathPart, ...]
    columns: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    by_language: dict[str, list[Row]] = field(default_factory=dict)

    @cached_property
    def messages(self) -> dict[str, list[Template]]:
        """The wordings of each language."""
        return {name: [Template(text, texts=True) for text in texts] for name, texts in self.spec.messages.items()}

    @cached_property
    def replies(self) -> dict[str, list[Template]]:
        """The right replies of each language."""
        return {name: [Template(text, texts=True) for text in texts] for name, texts in self.spec.gold.replies.items()}

    @cached_property
    def fallbacks(self) -> dict[str, list[Template]]:
        """What is said in each language when a tool failed for good."""
        return {
            name: [Template(text, texts=True) for text in texts] for name, texts in self.spec.gold.fallbacks.items()
        }

    @cached_property
    def context(self) -> Template:
        """What goes into the request's context."""
        return Template(self.spec.context)

    @cached_property
    def gold(self) -> Template:
        """Gold without its texts by language."""
        return Template({name: value for name, value in self._gold.items() if name not in _TEXTS})

    @cached_property
    def spoken(self) -> Template:
        """Facts and claims, which are texts whatever the column."""
        return Template({name: value for name, value in self._gold.items() if name in ("facts", "claims")}, texts=True)

    @cached_property
    def _gold(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self.spec.gold)
        return plain

    def gold_for(self, language: str, row: Row) -> Gold:
        """Gold with the row's values in it; `known` are the row's columns that hold something."""
        gold = msgspec.convert(self.gold.fill(row) | self.spoken.fill(row), Gold)
        gold.replies = [template.fill(row) for template in self.replies.get(language, ())]
        gold.fallbacks = [template.fill(row) for template in self.fallbacks.get(language, ())]
        gold.known = {name: value for name, value in row.items() if value is not None}
        return gold

    def fault(self, code: str, message: str, *at: PathPart, got: str = "", allowed: str = "", hint: str = "",
              key: bool = False) -> Fault:  # fmt: skip
        """A fault at a place within the family."""
        message = f"family {self.spec.id}: {message}"
        return self.document.fault(code, message, *self.at, *at, key=key, got=got, allowed=allowed, hint=hint)

    @property
    def place(self) -> str:
        """`path:line:col` of the family."""
        line, col = self.document.place(*self.at)
        return f"{self.document.path}:{line}:{col}"


def load_families(world: LiveWorld, faults: Faults) -> list[LoadedFamily]:
    """The families of all harnesses, in the order of the manifest. Nothing where the world has no `simulation`."""
    simulation = world.spec.simulation
    manifest = load_yaml(_shown(world, world.manifest), read_bytes(world.manifest), faults)
    if simulation is None or manifest is None:
        return []
    _check_simulation(world, simulation, manifest, faults)
    families: list[LoadedFamily] = []
    whole = True
    for number, name in enumerate(simulation.families):
        path = world.manifest.parent / name
        document = _document(world, path, name, manifest, number, faults)
        spec = convert(document, "Families", Families, faults) if document is not None else None
        if document is None or spec is None:
            whole = False
        else:
            families += [
                LoadedFamily(family, spec.harness, document, ("families", i)) for i, family in enumerate(spec.families)
            ]
    seen: dict[tuple[str, str], LoadedFamily] = {}
    for family in families:
        first = seen.setdefault((family.harness, family.spec.id), family)
        if first is not family:
            faults.add(family.fault("family-duplicate", "two families of one harness have one id", "id",
                                    got=family.spec.id, hint=f"the other is at {first.place}"))  # fmt: skip
        if family.spec.weight > MAX_SHARES:
            faults.add(family.fault("simulation-mix", "the weight is too large to be added up", "weight",
                                    got=f"{family.spec.weight:g}", allowed=f"{MAX_SHARES:g} at most"))  # fmt: skip
        if family.spec.intent not in simulation.mix:
            faults.add(family.fault("family-intent", "the mix has no such intent", "intent", got=family.spec.intent,
                                    allowed=", ".join(simulation.mix),
                                    hint=did_you_mean(family.spec.intent, simulation.mix)))  # fmt: skip
        if _draw(world, family, faults):
            _check_slots(family, faults)
    if families and whole:
        _check_mix(simulation, families, manifest, faults)
    return families


def _shown(world: LiveWorld, path: Path) -> str:
    return path.relative_to(world.root).as_posix() if path.is_relative_to(world.root) else path.as_posix()


def _document(
    world: LiveWorld, path: Path, name: str, manifest: Document, number: int, faults: Faults
) -> Document | None:
    at = ("simulation", "families", number)
    if not inside(world.root.resolve(), path):
        faults.add(manifest.fault("source-outside", "a file of families lies outside the project", *at, got=name,
                                  hint="copy it beside the manifest"))  # fmt: skip
        return None
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        faults.add(manifest.fault("family-file", "a file of families is not there", *at, got=name,
                                  hint=did_you_mean(path.name, beside)))  # fmt: skip
        return None
    try:
        return load_yaml(_shown(world, path), read_bytes(path), faults)
    except StorageError as error:
        faults.add(manifest.fault("family-file", f"a file of families cannot be read: {error.message}", *at, got=name))
        return None


def _check_simulation(world: LiveWorld, simulation: Simulation, manifest: Document, faults: Faults) -> None:
    rates = simulation.faults
    total = rates.timeout + rates.malformed + rates.denied + rates.stale
    if total > 1 + 1e-9:
        faults.add(manifest.fault("simulation-rates", "the rates of faults are more than every call", "simulation",
                                  "faults", got=f"{total:g}", allowed="at most 1 together"))  # fmt: skip
    whole = sum(simulation.mix.values())
    if not 0 < whole <= MAX_SHARES:
        faults.add(manifest.fault("simulation-mix", "no intent of the mix has a share" if whole == 0 else
                                  "the shares of the mix are too large to be added up", "simulation", "mix",
                                  allowed=f"one share above 0 at least, {MAX_SHARES:g} together at most"))  # fmt: skip
    for name, wanted in (("viewers", "viewer"), ("actions", "action")):
        sql: str | None = getattr(simulation.chatter, name)
        if sql is not None:
            _check_chatter(world, sql, manifest, name, wanted, faults)


def _check_chatter(world: LiveWorld, sql: str, manifest: Document, name: str, wanted: str, faults: Faults) -> None:
    """A query of the chatter gives rows that say who writes, or what is done."""
    at = ("simulation", "chatter", name)
    fault = reading_fault(world.connection(), sql, manifest, *at)
    if fault is not None:
        faults.add(fault)
        return
    try:
        columns, rows = world.read(sql, most=MAX_ROWS + 1)
    except sqlite3.Error as error:
        faults.add(manifest.fault("world-sql", f"SQLite cannot run the query: {error}", *at, hint=_run_hint(error)))
        return
    unfit = _unfit(rows, wanted) if wanted in columns else None
    if wanted not in columns:
        faults.add(manifest.fault("family-slot", f"the query gives no column `{wanted}`", *at,
                                  got=", ".join(columns), allowed=wanted))  # fmt: skip
    elif len(rows) > MAX_ROWS:
        faults.add(manifest.fault("world-sql", "the query gives more than can be used", *at,
                                  got=f"more than {MAX_ROWS} rows", allowed=f"at most {MAX_ROWS} rows"))  # fmt: skip
    elif unfit is not None:
        faults.add(manifest.fault("family-slot", f"`{wanted}` is no text", *at, got=unfit,
                                  allowed="text or a number in every row"))  # fmt: skip


def _run_hint(error: sqlite3.Error) -> str:
    if isinstance(error, QueryTooLongError):
        return TOO_LONG_HINT
    return "a draw knows no request, so it has no values to name" if "binding" in str(error).lower() else ""


def _check_mix(simulation: Simulation, families: list[LoadedFamily], manifest: Document, faults: Faults) -> None:
    for harness in dict.fromkeys(family.harness for family in families):
        served = dict.fromkeys(family.spec.intent for family in families if family.harness == harness)
        for intent, share in simulation.mix.items():
            if share > 0 and intent not in served:
                faults.add(manifest.fault("simulation-mix", f"no family of the harness {harness} has this intent",
                                          "simulation", "mix", intent, key=True, got=intent, allowed=", ".join(served),
                                          hint="add a family, or set the share to 0"))  # fmt: skip


def _draw(world: LiveWorld, family: LoadedFamily, faults: Faults) -> bool:
    """Fetch the rows; whether there are some in each language."""
    fault = reading_fault(
        world.connection(), family.spec.draw, family.document, *family.at, "draw", code="family-draw"
    )  # fmt: skip
    if fault is not None:
        faults.add(fault)
        return False
    try:
        family.columns, family.rows = world.read(family.spec.draw, most=MAX_ROWS + 1)
    except sqlite3.Error as error:
        faults.add(family.fault("family-draw", f"SQLite cannot run the query: {error}", "draw", hint=_run_hint(error)))
        return False
    if not family.rows:
        faults.add(family.fault("family-empty", "the query gives no row, so that nothing can be drawn", "draw",
                                allowed="one row at least", hint="look at the tables and the conditions"))  # fmt: skip
        return False
    twice = next((name for name in family.columns if family.columns.count(name) > 1), None)
    if twice is not None or len(family.rows) > MAX_ROWS:
        got = f"`{twice}` twice" if twice is not None else f"more than {MAX_ROWS} rows"
        allowed = "each column once" if twice is not None else f"at most {MAX_ROWS} rows"
        faults.add(family.fault("family-draw", "the query gives more than can be used", "draw", got=got,
                                allowed=allowed))  # fmt: skip
        return False
    return _by_language(family, faults)


def _by_language(family: LoadedFamily, faults: Faults) -> bool:
    languages = list(family.spec.messages)
    if "language" not in family.columns:
        family.by_language = dict.fromkeys(languages, family.rows)
        return True
    found = dict.fromkeys(row["language"] for row in family.rows)
    good = True
    for language in found:
        if language is not None and language not in languages:
            good = False
            faults.add(family.fault("family-language", "the query gives rows in a language without messages",
                                    "messages", key=True, got=str(language), allowed=", ".join(languages)))  # fmt: skip
    for language in languages:
        rows = [row for row in family.rows if row["language"] in (None, language)]
        family.by_language[language] = rows
        if not rows:
            good = False
            faults.add(family.fault("family-language", "the query gives no row for messages in this language",
                                    "messages", language, key=True, got=language,
                                    allowed=", ".join(map(str, found))))  # fmt: skip
    return good


def _check_slots(family: LoadedFamily, faults: Faults) -> None:
    spec: dict[str, Any] = msgspec.to_builtins(family.spec)
    unfit = {name: _unfit(family.rows, name) for name in family.columns}
    for name in _OF_THE_REQUEST:
        if name in unfit and any(type(row[name]) in (list, dict) for row in family.rows):
            faults.add(family.fault("family-slot", f"`{name}` cannot be a request's", "draw", got=unfit[name] or "",
                                    allowed="text or a number"))  # fmt: skip
    for part in ("messages", "context", "gold"):
        for text, at in _texts(spec.get(part), (part,)):
            try:
                template = Template(text, texts=part == "messages" or (part == "gold" and at[1] in _TEXTS))
            except SlotError as error:
                line, col = family.document.passage(*family.at, *at).place(error.at)
                faults.add(Fault(family.document.path, line, col, "family-slot",
                                 f"family {family.spec.id}: a brace is not part of a slot", text[error.at : error.at + 20],
                                 "{column}, or {{ and }} for braces"))  # fmt: skip
                continue
            said = part == "messages" or (part == "gold" and at[1] in _TEXTS and at[-1] != "source")
            if said and template.names <= unfit.keys():
                _check_blank(family, text, template, at, faults)
            for name in sorted(template.names):
                if name not in unfit:
                    faults.add(family.fault("family-slot", "a slot is no column of the query", *at, got=name,
                                            allowed=", ".join(family.columns),
                                            hint=did_you_mean(name, family.columns)))  # fmt: skip
                elif name in template.written and unfit[name] is not None:
                    faults.add(family.fault("family-slot", f"`{name}` cannot stand within a text", *at,
                                            got=unfit[name] or "", allowed="text or a number in every row"))  # fmt: skip


def _check_blank(family: LoadedFamily, text: str, template: Template, at: tuple[PathPart, ...], faults: Faults) -> None:
    """A message, a reply, a fact or a claim that would say nothing, as it stands or in one row."""
    if template.written and any(char.isalnum() for char in SLOT.sub("", text)):
        return
    for row in family.rows if template.names else family.rows[:1]:
        if not template.fill(row).strip():
            faults.add(family.fault("family-text", "a text is empty", *at, got="nothing", allowed="a text",
                                    hint=shown_row(row) if template.names else "fill it in, or leave it out"))  # fmt: skip
            return


def _unfit(rows: list[Row], name: str) -> str | None:
    """A value of the column that cannot stand within a text, with its row; None where all can."""
    for row in rows:
        if row[name] is None or type(row[name]) in (list, dict):
            return f"{'nothing' if row[name] is None else type(row[name]).__name__} in {shown_row(row)}"
    return None


def shown_row(row: Row, most: int = 3) -> str:
    """The first columns of a row, for a fault."""
    return "the row " + ", ".join(f"{name}={value}" for name, value in list(row.items())[:most])


def _texts(value: Any, at: tuple[PathPart, ...]) -> Iterator[tuple[str, tuple[PathPart, ...]]]:
    if isinstance(value, str):
        yield value, at
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*at, number))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*at, name))
