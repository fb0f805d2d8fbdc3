"""The pages on training: each command composes, each link leads somewhere, and the tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harnessctl import recipes
from harnessctl.train.order import STAGES

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/training.md", "docs/log.md")
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def commands() -> list[str]:
    """Every `harnessctl train` of the pages that names its recipe, once, as one line without its comment."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^    (?:accelerate .* -m )?(harnessctl train .*)$", text, re.MULTILINE):
            found.setdefault(" ".join(shlex.split(line, comments=True)))
    return [command for command in found if "--resume" not in command]


@pytest.mark.parametrize("command", commands())
def test_each_command_composes(command: str):
    stage, *rest = command.split()[2:]
    keys = [word for word in rest if "=" in word]
    assert set(rest) - set(keys) <= {"-m", "--cfg"}
    for overrides in recipes.expand(keys) if "-m" in rest else [keys]:
        chosen = recipes.for_model(ROOT, stage, overrides)
        config = recipes.debugged(recipes.compose(ROOT, stage, chosen), chosen)
        assert config["model"]["name"] in {key.partition("=")[2] for key in keys if key.startswith("model=")}


def test_every_stage_has_a_section_and_a_command():
    text = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    for stage in STAGES:
        assert f"\n## {stage}\n" in text
        assert any(command.startswith(f"harnessctl train {stage} ") for command in commands())


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str):
    path = ROOT / page
    for place, anchor in _LINK.findall(path.read_text(encoding="utf-8")):
        target = path.parent / place if place else path
        assert target.exists(), place
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}, anchor


@pytest.mark.parametrize("page", ["docs/training.md", "docs/log.md"])
def test_lines_fit_a_terminal(page: str):
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []
