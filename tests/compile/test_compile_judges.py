"""A judge can change what a harness does: its digest is part of the judged state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.cli.project import judge_source
from harnessctl.compile import compile_project
from harnessctl.compile.diff import diff_bundles
from harnessctl.errors import HarnessctlError

Shop = Callable[..., Path]
HOOKS = "manifests/hooks/guards.yaml"
LOOKS = """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - {id: looks-on, event: stop, check: {judge: {harness: judges/second}}, otherwise: {action: warn}}
"""
JUDGE = """apiVersion: harnessctl/v1
kind: Harness
name: %s
version: 1.0.0
include: {hooks: [%s]}
prompt: judge
limits: {max_rounds: 2}
"""
PROMPT = """apiVersion: harnessctl/v1
kind: PromptPipeline
name: judge
blocks: [{id: base, template: Judge it.}]
"""


@pytest.fixture
def judged(shop: Shop) -> Path:
    """The shop, judged by `first`, which is judged by `second`."""
    judge = "{all: [{max_chars: {limit: reply_max_chars}}, {judge: {harness: first}}]}"
    return shop(
        {
            HOOKS: ("{max_chars: {limit: reply_max_chars}}", judge),
            "manifests/hooks/looks.yaml": LOOKS,
            "manifests/judges/first.yaml": JUDGE % ("first", "looks"),
            "manifests/judges/second.yaml": JUDGE % ("second", ""),
            "manifests/prompts/judge.yaml": PROMPT,
        }
    )


def bundles(root: Path) -> dict[str, Bundle]:
    return {bundle.harness: read_bundle(bundle.path) for bundle in compile_project(root).bundles}


def edit(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))


def test_the_digests_of_judges_and_of_their_judges_are_in_the_state(judged: Path) -> None:
    made = bundles(judged)
    assert made["second"].state.judges == {}
    assert made["first"].state.judges == {"judges/second": made["second"].digest}
    assert made["shop"].state.judges == {"first": made["first"].digest, "judges/second": made["second"].digest}


def test_a_changed_judge_is_a_changed_harness_and_diff_says_so(judged: Path) -> None:
    before = bundles(judged)
    edit(judged, "manifests/judges/second.yaml", "max_rounds: 2", "max_rounds: 3")
    after = bundles(judged)
    assert all(before[name].digest != after[name].digest for name in before)
    changes = diff_bundles(before["shop"], after["shop"])
    assert {change.at for change in changes} == {"judges/first", "judges/judges~1second"}


def test_a_bundle_is_judged_by_the_judge_that_it_was_compiled_with(judged: Path) -> None:
    old = bundles(judged)
    edit(judged, "manifests/judges/first.yaml", "max_rounds: 2", "max_rounds: 3")
    new = bundles(judged)
    assert judge_source(new["shop"], judged)("first").digest == new["first"].digest
    assert judge_source(old["shop"], judged)("first").digest == old["first"].digest
    (judged / "build" / old["first"].file_name).unlink()
    with pytest.raises(HarnessctlError, match=f"by now, and the bundle was compiled with {old['first'].digest[:12]}"):
        judge_source(old["shop"], judged)("first")
    with pytest.raises(HarnessctlError, match="there is no project here"):
        judge_source(old["shop"], None)("first")


def test_without_judges_the_digest_is_what_it_was(shop: Shop) -> None:
    assert b'"judges"' not in compile_project(shop()).path().read_bytes()
