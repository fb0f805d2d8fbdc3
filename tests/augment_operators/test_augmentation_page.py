"""docs/augmentation.md says of operators, envelopes and records what is so."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import yaml
from operator_trial import Shouting

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.operator import STAGES
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import Bundle, read_bundle
from harnessctl.bundle.variation import Variation, rebuild
from harnessctl.compile.project import compile_project
from harnessctl.manifests.schemas import schema_for
from harnessctl.manifests.templates import copy_template

PAGE = "docs/augmentation.md"
EXAMPLE = "docs/examples/variation.jsonl"
_ROW = re.compile(r"^\| `([a-z-]+)` \| (.*) \| (.*) \| (.*) \| (yes|no) \| (.*) \|$")


def rows(page: str) -> dict[str, dict[str, str]]:
    """The rows of the operators' tables by operator, with the heading that each stands under."""
    found: dict[str, dict[str, str]] = {}
    dimension = ""
    for line in page.splitlines():
        if line.startswith("### "):
            dimension = line.removeprefix("### ").lower().replace(" ", "-")
        elif match := _ROW.match(line):
            name, _, _, settings, keeps, source = match.groups()
            found[name] = {"dimension": dimension, "settings": settings, "keeps": keeps, "source": source}
    return found


def settings_in(cell: str) -> dict[str, Any]:
    """`count`, `styles: [a, b]` as {"count": None, "styles": ["a", "b"]}."""
    out: dict[str, Any] = {}
    for part in re.findall(r"`([^`]+)`", cell):
        out |= yaml.safe_load(part) if ":" in part else {part: None}
    return out


def test_the_tables_list_every_operator_as_it_is(repository: Path) -> None:
    found = rows((repository / PAGE).read_text(encoding="utf-8"))
    operators = shipped_operators()
    assert set(found) == set(operators)
    for name, operator in operators.items():
        row = found[name]
        assert row["dimension"] == operator.dimension, name
        assert row["keeps"] == ("yes" if operator.keeps_difficulty else "no"), name
        told = settings_in(row["settings"])
        assert set(told) == {*operator.reads, *operator.options}, name
        for option, value in told.items():
            assert value is None or list_or_value(value) == list_or_value(operator.options[option]), (name, option)
        assert operator.stage in STAGES
        source = Path(inspect.getfile(type(operator))).read_text(encoding="utf-8")
        assert ("eyond the paper" in source) == row["source"].startswith("beyond"), name


def list_or_value(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value


def test_the_envelope_of_the_page_is_one_of_the_shipped_host(repository: Path, tmp_path: Path) -> None:
    page = (repository / PAGE).read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    copy_template("live-stream", tmp_path)
    (tmp_path / "manifests/envelopes/careful.yaml").write_text(text)
    bundle = read_bundle(compile_project(tmp_path).path())
    envelope = load_envelope(tmp_path, "careful", bundle)
    augmenter = Augmenter(bundle, envelope, rewriter=Shouting())
    names = {name for number in range(30) for name in augmenter.variant(seed=1, number=number).variation.operators}
    assert names == set(envelope.operators)


def minimal(folder: Path) -> Bundle:
    copy_template("minimal", folder)
    return read_bundle(compile_project(folder).path())


def test_the_record_of_the_examples_gives_its_variant_again(repository: Path, tmp_path: Path) -> None:
    (line,) = (repository / EXAMPLE).read_text(encoding="utf-8").splitlines()
    validator = jsonschema_rs.validator_for(schema_for("Variation"))
    assert [error.message for error in validator.iter_errors(json.loads(line))] == []
    variation = msgspec.json.decode(line, type=Variation)
    bundle = rebuild(minimal(tmp_path), variation)
    assert bundle.digest == variation.variant != variation.parent
    assert len(variation.operators) >= 5
