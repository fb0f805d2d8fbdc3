"""What the shipped harnesses hold."""

from __future__ import annotations

from collections import Counter

import pytest
from host_agent import REPOSITORY, bundle, compiled

from harnessctl.bundle.text import Ref

EVENTS = {"input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end"}


def test_the_host_compiles_without_a_word():
    assert [fault.render() for fault in compiled().warnings] == []
    assert {made.harness for made in compiled().bundles} >= {"live-stream", "mini"}


def test_skills_tools_and_hooks_are_as_many_as_promised():
    state = bundle().state
    kinds = Counter(skill.kind for skill in state.skills)
    assert kinds["reply"] >= 6
    assert kinds["strategy"] >= 3
    assert len(state.tools) >= 12
    assert {tool.group for tool in state.tools} == {"retrieval", "commerce", "flow-control", "marketing"}
    assert len(state.hooks) >= 9
    assert {hook.event for hook in state.hooks} == EVENTS
    assert {action.action for hook in state.hooks if (action := hook.then or hook.otherwise)} >= {
        "block", "retry", "warn", "stop_loop", "fallback",
    }  # fmt: skip


def test_each_skill_has_rules_that_can_be_masked_and_ones_that_cannot():
    for skill in bundle().state.skills:
        assert 5 <= len(skill.rules) <= 10, skill.name
        assert any(rule.protected for rule in skill.rules), skill.name
        assert not all(rule.protected for rule in skill.rules), skill.name
    assert sum(bool(skill.examples) for skill in bundle().state.skills) >= 5


def test_rules_use_every_attribute():
    rules = [rule for skill in bundle().state.skills for rule in skill.rules]
    for attribute in ("protected", "verbatim", "after", "requires", "limit"):
        assert any(getattr(rule, attribute) for rule in rules), attribute


def test_limits_that_are_said_are_the_limits_that_hold():
    state = bundle().state
    said = {
        part.name
        for texts in ([rule.text for skill in state.skills for rule in skill.rules], [i.text for b in state.prompt.blocks for i in b.items])
        for text in texts
        for part in text
        if isinstance(part, Ref) and part.kind == "limit"
    }  # fmt: skip
    assert said == {"suggest_max_items", "low_stock_under", "coupon_max_yuan", "answers_max"}
    for name in (*said, "reply_max_chars", "max_rounds", "max_tool_calls"):
        assert state.limits[name].range is not None, name


def test_every_allowed_tool_exists():
    state = bundle().state
    names = {tool.name for tool in state.tools}
    for skill in state.skills:
        assert set(skill.allowed_tools) <= names, skill.name


def test_every_tool_is_named_by_a_skill_the_prompt_or_a_hook():
    state = bundle().state
    named = {name for skill in state.skills for name in skill.allowed_tools}
    texts = [rule.text for skill in state.skills for rule in skill.rules]
    texts += [item.text for block in state.prompt.blocks for item in block.items]
    named |= {part.name for text in texts for part in text if isinstance(part, Ref) and part.kind == "tool"}
    assert {tool.name for tool in state.tools} - named == {"load_skill"}


@pytest.mark.parametrize("block", ["base", "product", "faq", "room", "boundaries", "skills", "history", "comment"])
def test_the_prompt_has_the_papers_blocks(block):
    assert block in {b.id for b in bundle().state.prompt.blocks}


def test_no_manifest_is_left_out():
    included = {
        path.split("/")[-1] for made in map(bundle, ("live-stream", "mini", "live-judge")) for path in made.sources
    }
    files = [
        p for p in (REPOSITORY / "manifests").rglob("*") if p.suffix in (".yaml", ".py") and "worlds" not in p.parts
    ]
    mine = [p for p in files if p.parent.name in ("tools", "hooks", "prompts", "manifests")]
    assert {p.name for p in mine} - {"roles.yaml"} <= included  # roles are of no harness
