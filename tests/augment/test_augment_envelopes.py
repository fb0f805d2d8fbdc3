"""Envelopes: presets, and every bad input with its place and reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.envelopes import check_envelopes, envelope_names, load_envelope
from harnessctl.augment.variants import envelope_digest
from harnessctl.bundle import Bundle
from harnessctl.cli.project import validate_all
from harnessctl.errors import FaultsError, UsageError
from harnessctl.manifests.templates import template_root

Write = Callable[[Mapping[str, str | bytes]], Path]

HEAD = "apiVersion: harnessctl/v1\nkind: Envelope\nname: mine\nversion: 1.0.0\n"

#: Section 3.2 by dimension, and C.2's message processing.
PAPER = {
    "skill-identifier": {"skill-synthetic", "skill-noise", "skill-mask", "skill-rename", "skill-describe"},
    "skill-content": {"rule-paraphrase", "rule-mask", "rule-reorder"},
    "tool-definition": {"tool-rename", "tool-describe"},
    "system-prompt": {"block-reorder", "item-reorder", "limit-perturb"},
    "hook": {"hook-retries", "hook-message", "hook-role", "hook-wrap"},
    "message": {"message-order", "message-frame"},
}


def write(project: Write, text: str, name: str = "mine") -> Path:
    return project({f"manifests/envelopes/{name}.yaml": text})


def faults_of(root: Path, bundle: Bundle | None = None, **options: object) -> str:
    with pytest.raises(FaultsError) as caught:
        load_envelope(root, "mine", bundle, **options)  # pyrefly: ignore
    return caught.value.render()


def test_the_presets_are_found_without_a_project():
    assert {"none", "paper", "wide"} <= set(envelope_names(None))


@pytest.mark.parametrize("name", ["none", "paper", "wide"])
def test_the_presets_fit_every_harness(name: str, live: Bundle, mini: Bundle, kiosk: Bundle, retail: Bundle):
    for bundle in (live, mini, kiosk, retail):
        assert load_envelope(None, name, bundle, gold_skills={"item-qa": ["price"]}).name == name


def test_paper_is_the_papers_five_dimensions():
    operators = shipped_operators()
    found: dict[str, set[str]] = {}
    for name in load_envelope(None, "paper").operators:
        found.setdefault(operators[name].dimension, set()).add(name)
    assert found == PAPER
    assert "opaque" not in str(load_envelope(None, "paper").operators)


def test_wide_is_every_operator_and_none_is_no_operator():
    assert set(load_envelope(None, "wide").operators) == set(shipped_operators())
    assert load_envelope(None, "none").operators == {}


def test_a_projects_own_goes_before_a_preset(project: Write):
    root = write(project, HEAD.replace("mine", "paper"), "paper")
    assert load_envelope(root, "paper").operators == {}
    assert "wide" in envelope_names(root)


def test_an_envelope_that_there_is_not():
    with pytest.raises(UsageError) as caught:
        load_envelope(None, "papre")
    assert "no envelope 'papre'; there are" in caught.value.message
    assert caught.value.hint == "did you mean `paper`?"


def test_the_digest_is_of_what_is_allowed(project: Write):
    root = write(project, HEAD + "description: One.\noperators: {skill-mask: {rate: 0.5}}\n")
    first = envelope_digest(load_envelope(root, "mine"))
    write(project, HEAD + "description: Other.\noperators: {skill-mask: {rate: 0.5}}\n")
    assert envelope_digest(load_envelope(root, "mine")) == first
    write(project, HEAD + "operators: {skill-mask: {rate: 0.4}}\n")
    assert envelope_digest(load_envelope(root, "mine")) != first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("operators:\n  skill-rename: {rate: 1.5}\n", "manifests/envelopes/mine.yaml:6:24: error[schema-range]"),
        ("operators:\n  skill-rename: {rate: -0.1}\n", "mine.yaml:6:24: error[schema-range]"),
        ("operators:\n  skill-rename: {rte: 0.1}\n", "mine.yaml:6:18: error[schema-unknown-field]"),
        ("operators:\n  skill-renam: {}\n", "mine.yaml:6:3: error[envelope-operator]: there is no operator of this name; got skill-renam; allowed block-reorder"),
        ("operators:\n  skill-renam: {}\n", "hint: did you mean `skill-rename`?"),
        ("operators:\n  skill-rename: {count: [1, 2]}\n", "mine.yaml:6:18: error[envelope-setting]: the operator skill-rename does not read `count`; got count; allowed allow, deny, options, rate"),
        ("operators:\n  skill-rename: {ranges: {max_rounds: [1, 2]}}\n", "mine.yaml:6:18: error[envelope-setting]: the operator skill-rename does not read `ranges`"),
        ("operators:\n  skill-noise: {count: [3, 1]}\n", "mine.yaml:6:24: error[envelope-count]: a count is two whole numbers, from and to; got [3,1]"),
        ("operators:\n  skill-noise: {count: [0.5, 1]}\n", "error[envelope-count]"),
        ("operators:\n  skill-noise: {count: [-1, 1]}\n", "error[envelope-count]"),
        ("operators:\n  skill-noise: {count: [1]}\n", "error[schema-length]"),
        ("operators:\n  limit-perturb: {ranges: {max_rounds: [6, 4]}}\n", "mine.yaml:6:40: error[envelope-range]: a range ends before it begins; got [6,4]"),
        ("operators:\n  skill-rename: {options: {style: [plain]}}\n", "mine.yaml:6:28: error[envelope-option]: the operator skill-rename has no option `style`; got style; allowed styles"),
        ("operators:\n  skill-rename: {options: {styles: plain}}\n", "mine.yaml:6:36: error[envelope-option]: `styles` of skill-rename is of another type"),
        ("operators:\n  skill-rename: {options: {styles: [1]}}\n", "error[envelope-option]: `styles` of skill-rename is of another type; got [1]"),
        ("operators:\n  skill-rename: {options: {styles: [plain, opake]}}\n", "mine.yaml:6:44: error[envelope-option]: `styles` of skill-rename has no such value; got \"opake\"; allowed opaque, plain, synonym"),
        ("operators:\n  tool-rename: {options: {styles: [fancy]}}\n", "error[envelope-option]: `styles` of tool-rename has no such value"),
        ("operators:\n  skill-rename: {options: {styles: []}}\n", "error[envelope-option]: `styles` of skill-rename names nothing"),
        ("operators:\n  message-frame: {options: {leads: [1]}}\n", "error[envelope-option]: `leads` of message-frame is of another type; got [1]; allowed list of texts"),
        ("operators:\n  hook-wrap: {options: {tags: [hint, 'a b']}}\n", "mine.yaml:6:38: error[envelope-option]: `tags` of hook-wrap cannot be that; got \"a b\""),
        ("operators:\n  rule-reorder: {options: {numbered: 1}}\n", "error[envelope-option]: `numbered` of rule-reorder is of another type; got 1; allowed"),
        ("operators:\n  skill-rename: {allow: []}\n", "mine.yaml:6:25: error[envelope-target]: `allow` names nothing; got []"),
        ("operators:\n  tool-describe: {options: {parameters: 7}}\n", "mine.yaml:6:41: error[envelope-option]: `parameters` of tool-describe is out of range; got 7; allowed from 0 to 1"),
        ("operators:\n  hook-delay: {options: {least_ms: -5}}\n", "error[envelope-option]: `least_ms` of hook-delay is out of range; got -5"),
        ("operators:\n  hook-delay: {options: {most_ms: 1000000}}\n", "error[envelope-option]: `most_ms` of hook-delay is out of range; got 1000000"),
        ("operators:\n  hook-delay: {options: {least_ms: 20}}\n", "mine.yaml:6:36: error[envelope-option]: `least_ms` of hook-delay is beyond `most_ms`; got least_ms 20, most_ms 10"),
        ("operators:\n  hook-delay: {options: {least_ms: 20, most_ms: 3}}\n", "mine.yaml:6:49: error[envelope-option]: `least_ms` of hook-delay is beyond `most_ms`"),
        ("operators:\n  message-frame: {options: {leads: ['use `x` now']}}\n", "error[envelope-option]: `leads` of message-frame cannot be that"),
        ("operators: [skill-rename]\n", "error[schema-type]"),
        ("rewriter: dreams\n", "error[schema-value]"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_with_their_place(project: Write, text: str, expected: str):
    root = write(project, HEAD + text)
    assert expected in faults_of(root)
    assert expected in "\n".join(fault.render() for fault in check_envelopes(root).items), "validate finds it too"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "error[manifest-empty]: the file is not a manifest; got nothing"),
        ("- 1\n", "error[manifest-empty]"),
        ("a: [\n", "error[yaml-bracket]"),
        (HEAD.replace("Envelope", "Tools"), "mine.yaml:2:7: error[schema-value]"),
        (HEAD.replace("name: mine", "name: yours"), "mine.yaml:3:7: error[envelope-name]: the envelope's name is not its file's; got yours; allowed mine"),
    ],
)  # fmt: skip
def test_what_is_no_envelope_is_refused(project: Write, text: str, expected: str):
    assert expected in faults_of(write(project, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limit-perturb: {ranges: {reply_max_chars: [100, 300]}}", "mine.yaml:6:45: error[envelope-range]: the range leaves that of the limit in live-stream; got [100,300]; allowed from 120 to 240"),
        ("limit-perturb: {ranges: {reply_max_char: [130, 200]}}", "mine.yaml:6:28: error[envelope-range]: the harness live-stream has no limit of this name; got reply_max_char"),
        ("limit-perturb: {ranges: {reply_max_char: [130, 200]}}", "hint: did you mean `reply_max_chars`?"),
        ("limit-perturb: {ranges: {deadline_s: [10, 12]}}", "the harness live-stream gives this limit no range to move in"),
        ("skill-rename: {allow: [item-aq]}", "mine.yaml:6:26: error[envelope-target]: the pattern names no target of skill-rename in live-stream; got item-aq"),
        ("skill-rename: {allow: [item-aq]}", "hint: did you mean `item-qa`?"),
        ("skill-rename: {allow: [item-qa], deny: ['zz*']}", "mine.yaml:6:43: error[envelope-target]"),
        ("skill-rename: {allow: [item-qa], deny: ['*']}", "mine.yaml:6:42: error[envelope-target]: `deny` leaves skill-rename no target in live-stream; got [\"*\"]"),
        ("limit-perturb: {ranges: {reply_max_chars: [120.2, 120.8]}}", "mine.yaml:6:45: error[envelope-range]: the limit is a whole number in live-stream, and the range holds none"),
        ("hook-deny: {options: {tools: [get_prodct]}}", "mine.yaml:6:33: error[envelope-option]: `tools` of hook-deny names nothing in live-stream; got \"get_prodct\""),
        ("message-order: {options: {inputs: [nosuch]}}", "error[envelope-option]: `inputs` of message-order names nothing in live-stream; got \"nosuch\"; allowed actions, messages"),
        ("rule-mask: {allow: ['item-qa#lookup']}", "item-qa#lookup must stay: it is protected"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_harness_is_refused(project: Write, live: Bundle, text: str, expected: str):
    root = write(project, HEAD + f"operators:\n  {text}\n")
    assert load_envelope(root, "mine").name == "mine", "nothing is wrong whatever the harness"
    assert expected in faults_of(root, live)


def test_a_range_of_a_limit_that_must_stay_is_refused(project: Write, live: Bundle):
    """Its number stands in a hook's message, which would go on asking for it."""
    copy = msgspec.convert(msgspec.to_builtins(live), Bundle)
    hook = next(
        h for h in copy.state.hooks if "reply_max_chars" in str(h.check) and h.otherwise and h.otherwise.message
    )
    value = copy.state.limits["reply_max_chars"].value
    hook.otherwise.message.text = [f"At most {value}."]  # pyrefly: ignore
    root = write(project, HEAD + "operators:\n  limit-perturb: {ranges: {reply_max_chars: [130, 200]}}\n")
    shown = faults_of(root, copy)
    assert (
        "error[envelope-range]: the number of this limit is written out in live-stream where it cannot follow" in shown
    )
    assert f"got {value} at hooks/{hook.id}/message" in shown


GOLD = {"item-qa": ["price", "size"], "live-chat": ["greeting"]}


@pytest.mark.parametrize("pattern", ["item-qa", "item-*", "{item-qa, live-chat}"])
def test_an_envelope_that_would_mask_gold_is_refused(project: Write, live: Bundle, pattern: str):
    patterns = pattern.strip("{}")
    root = write(project, HEAD + f"operators:\n  skill-mask: {{allow: [{patterns}]}}\n")
    shown = faults_of(root, live, gold_skills=GOLD)
    assert "mine.yaml:6:24: error[envelope-gold]: the envelope would mask item-qa, which is gold" in shown
    assert "hint: gold of the families price, size" in shown


@pytest.mark.parametrize(
    "settings",
    [
        "{}",  # what a sample needs is kept, whichever it is
        "{allow: ['*']}",
        "{allow: [coupon-match]}",
        "{allow: ['*-qa', coupon-match], deny: [item-qa], rate: 0.5}",
        "{allow: [item-qa], rate: 0}",
    ],
)
def test_an_envelope_that_can_mask_something_else_is_not_refused(project: Write, live: Bundle, settings: str):
    root = write(project, HEAD + f"operators:\n  skill-mask: {settings}\n")
    assert load_envelope(root, "mine", live, gold_skills=GOLD).operators


def test_all_faults_are_shown_at_once(project: Write):
    root = write(project, HEAD + "operators:\n  a-b: {}\n  c-d: {}\n  skill-noise: {count: [2, 1]}\n")
    assert faults_of(root).endswith("3 errors found")


def test_validate_finds_a_broken_operator_of_the_project(project: Write):
    root = project({"manifests/operators/own.py": "x = 1\n"})
    assert [fault.code for fault in check_envelopes(root).items] == ["operator-form"]


def test_validate_checks_the_envelopes_of_a_project(tmp_path: Path):
    shutil.copytree(template_root("minimal"), tmp_path / "shop")
    assert not validate_all(tmp_path / "shop").errors
    envelope = tmp_path / "shop/manifests/envelopes/mine.yaml"
    envelope.parent.mkdir(exist_ok=True)
    envelope.write_text(HEAD + "operators: {skill-renam: {}}\n")
    assert [(f.path, f.line, f.code) for f in validate_all(tmp_path / "shop").errors] == [
        ("manifests/envelopes/mine.yaml", 5, "envelope-operator")
    ]
