"""`new operator`, and what other commands say of a variant's bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from operator_trial import Shouting

from harnessctl.augment.discovery import find_operators, shipped_operators
from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import read_bundle, write_bundle
from harnessctl.bundle.state import Action, Framing, Hook, Tool
from harnessctl.bundle.variation import Changes, HookChange, rebuild, variant_bundle, vary
from harnessctl.cli.main import main
from harnessctl.errors import FaultsError


class Said(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Said]

ENVELOPE = """\
apiVersion: harnessctl/v1
kind: Envelope
name: mine
version: 1.0.0
operators:
  {name}: {settings}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str, cwd: Path | None = None) -> Said:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        capsys.readouterr()
        code = main(list(arguments))
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def shop(tmp_path: Path, run: Run) -> Path:
    root = tmp_path / "shop"
    assert run("init", str(root)).code == 0
    assert run("compile", cwd=root).code == 0
    return root


def bundle_path(root: Path) -> Path:
    return next((root / "build").glob("*.bundle.json"))


def write_envelope(root: Path, name: str, settings: str = "{rate: 1}") -> None:
    path = root / "manifests/envelopes/mine.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(ENVELOPE.format(name=name, settings=settings))


def test_a_new_operator_is_found_and_applied(run: Run, shop: Path) -> None:
    made = run("new", "operator", "put-aside", cwd=shop)
    assert (made.code, made.out) == (0, "manifests/operators/put_aside.py\n")
    assert "`put-aside: {rate: 0.5}`" in made.err
    assert run("validate", cwd=shop).code == 0
    operators = find_operators(shop)
    assert set(operators) == {*shipped_operators(), "put-aside"}
    write_envelope(shop, "put-aside")
    bundle = read_bundle(bundle_path(shop))
    envelope = load_envelope(shop, "mine", bundle, operators=operators)
    augmenter = Augmenter(bundle, envelope, rewriter=Shouting(), operators=operators)
    variants = [augmenter.variant(seed=1, number=number) for number in range(12)]
    wraps = {v.bundle.state.prompt.framing.wrap for v in variants if v.bundle.state.prompt.framing is not None}
    assert wraps == {"audience", "floor", "room"}
    assert all(v.variation.operators == {"put-aside": ["viewer"]} for v in variants)
    assert rebuild(bundle, variants[0].variation).digest == variants[0].bundle.digest


def test_settings_of_a_new_operator_are_checked(run: Run, shop: Path) -> None:
    assert run("new", "operator", "put-aside", cwd=shop).code == 0
    write_envelope(shop, "put-aside", "{rate: 1, options: {tag: [x]}}")
    with pytest.raises(FaultsError) as error:
        load_envelope(shop, "mine")
    (fault,) = error.value.faults
    assert "put-aside has no option `tag`" in fault.message


def test_a_tag_that_is_none_is_refused_with_its_place(shop: Path) -> None:
    write_envelope(shop, "hook-wrap", "{rate: 1, options: {tags: [note, 'a b>']}}")
    with pytest.raises(FaultsError) as error:
        load_envelope(shop, "mine")
    (fault,) = error.value.faults
    assert (fault.line, fault.code) == (6, "envelope-option")
    assert "a b>" in fault.got


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tool-rename", "has an operator tool-rename itself"),
        ("Put", "is no name"),
        ("../x", "is no name"),
        ("", "is no name"),
    ],
)
def test_a_name_that_will_not_do(run: Run, shop: Path, name: str, says: str) -> None:
    refused = run("new", "operator", name, cwd=shop)
    assert refused.code == 2
    assert says in refused.err
    assert not (shop / "manifests/operators").exists()


@pytest.mark.parametrize("name", ["class", "x", "3-d", "none", "any", "framing"])
def test_odd_names_do(run: Run, shop: Path, name: str) -> None:
    assert run("new", "operator", name, cwd=shop).code == 0
    assert name in find_operators(shop)
    assert run("new", "operator", name, cwd=shop).code == 2


@pytest.fixture
def variant(shop: Path) -> Path:
    bundle = read_bundle(bundle_path(shop))
    state = bundle.state
    tool, hook = state.tools[0], next(h for h in state.hooks if h.otherwise and h.otherwise.message)
    changes = Changes(
        tools={tool.name: "fetch_it"},
        skills={state.skills[0].name: "reply-well"},
        texts={f"tools/{tool.name}/description": ["Fetches."]},
        added_tools=[Tool(name="moon", description=["Tells of the moon."], group="x", run={"builtin": "search_faq"})],
        added_hooks=[Hook(id="late", event="stop", check={"expr": "true"}, otherwise=Action(action="warn"))],
        hooks={hook.id: HookChange(wrap="note")},
        framing=Framing(reverse=["messages"], lead=["New:"], wrap="input"),
    )
    return write_bundle(variant_bundle(bundle, vary(state, changes)), shop / "build/variants")


@pytest.fixture
def in_shop(run: Run, shop: Path, variant: Path) -> Callable[..., Said]:
    return lambda *arguments: run(*arguments, cwd=shop)


def test_diff_tells_what_is_other_in_a_variant(in_shop: Run, shop: Path, variant: Path) -> None:
    shown = in_shop("diff", str(bundle_path(shop)), str(variant))
    assert shown.code == 0
    for line in (
        "framing",
        "(none) -> fetch_it",
        "(none) -> reply-well",
        "+ tool: Tells of the moon.",
        "+ hook: at stop",
        "wrap: (none) -> note",
    ):
        assert line in shown.out
    found: list[dict[str, Any]] = json.loads(in_shop("diff", str(bundle_path(shop)), str(variant), "--json").out)
    framing = next(change for change in found if change["kind"] == "prompt.framing")
    assert framing["after"] == {"reverse": ["messages"], "lead": "New:", "wrap": "input"}


def test_show_counts_names_and_says_the_framing(in_shop: Run, shop: Path, variant: Path) -> None:
    shown = in_shop("show", str(variant)).out
    assert "shown renamed  1 skill, 1 tool\n" in shown
    assert "framing        messages newest first, a lead, <input>\n" in shown
    assert json.loads(in_shop("show", str(variant), "--json").out)["surface"]["tools"]
    assert "framing        -\n" in in_shop("show", str(bundle_path(shop))).out
    assert "moon" in in_shop("show", str(variant), "--inventory").out


def test_render_shows_what_a_model_of_the_variant_sees(in_shop: Run, variant: Path) -> None:
    shown = in_shop("render", str(variant), "--text", "How much?").out
    assert "<input>\nNew:\n" in shown
    assert '"name":"fetch_it"' in shown
    assert "How much?\n</input>" in shown
