"""Actions that can do what they say: a rewrite has a value, a retry tells the model something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Faults = Callable[..., list[str]]
HOOKS = "manifests/hooks/guards.yaml"
OWN = {"manifests/hooks/own.py": "def check(names):\n    return True\n"}


def hook(event: str, check: str, action: str) -> dict[str, object]:
    text = f"  - id: more\n    event: {event}\n    check: {check}\n    otherwise: {action}\n  - id: short-reply\n"
    return {HOOKS: ("  - id: short-reply\n", text), **OWN}


@pytest.mark.parametrize(
    ("event", "check", "gives"),
    [
        ("stop", "{python: 'own:check'}", True),
        ("stop", "{all: [{regex: {must: a}}, {python: 'own:check'}]}", True),
        ("stop", "{any: [{python: 'own:check'}]}", False),
        ("stop", "{not: {python: 'own:check'}}", False),
        ("stop", "{regex: {must: a}}", False),
        ("pre_tool", "{command: {shell: 'exit 2'}}", False),
        ("pre_tool", "{command: {shell: 'exit 2', protocol: claude}}", True),
        ("post_tool", "{all: [{command: {shell: 'exit 2', protocol: gemini}}]}", True),
        ("post_model", "{command: {shell: 'exit 2', protocol: gemini}}", True),
        ("post_model", "{command: {shell: 'exit 2', protocol: claude}}", False),
        ("stop", "{command: {shell: 'exit 2', protocol: claude}}", False),
    ],
)
def test_a_rewrite_without_a_template_needs_a_check_that_gives_the_value(
    faults: Faults, event: str, check: str, gives: bool
) -> None:
    found = faults(hook(event, check, "{action: rewrite}"))
    assert ["error[hook-action]: the action rewrite says nothing to rewrite with" in text for text in found] == (
        [] if gives else [True]
    )


def test_a_retry_before_the_model_answers_is_allowed_and_takes_no_round(faults: Faults) -> None:
    action = '{action: retry, max_retries: 9, message: {text: "Be brief."}}'
    assert faults(hook("pre_model", "{expr: round < 2}", action)) == []


@pytest.mark.parametrize("phrase", ['""', '" "'])
def test_a_phrase_that_is_in_every_text(faults: Faults, phrase: str) -> None:
    (text,) = faults(hook("stop", f"{{forbid_phrases: {{phrases: [a, {phrase}]}}}}", "{action: block}"))
    assert "guards.yaml:12:43: error[hook-check]: an empty phrase is in every text" in text


@pytest.mark.parametrize("source", ["true) }} {{ (1", "1 }}{% include x %}{{ 2", "reply }", "reply) or (x"])
def test_an_expression_is_one_expression(faults: Faults, source: str) -> None:
    (text,) = faults(hook("stop", f'{{expr: "{source}"}}', "{action: block}"))
    assert "error[template-syntax]: an expression cannot be read" in text


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("{{ ''['__cla' ~ 'ss__'] }}", "__class__"),
        ("{{ ''['__cla' + 'ss__'] }}", "__class__"),
        ("{{ links | map(attribute='a.__class__') | list }}", "__class__"),
        ("{{ links | map('attr', '__class__') | list }}", "attr"),
        ("{{ links | selectattr('_hidden') | list }}", "_hidden"),
        ("{{ links | sort(attribute='_hidden') }}", "_hidden"),
    ],
)
def test_a_name_put_together_escapes_the_sandbox_no_better(faults: Faults, source: str, what: str) -> None:
    (text,) = faults(
        {"manifests/prompts/main.yaml": ("      You host {{ room.title }}.\n", f"      You host. {source}\n")}
    )
    assert f"error[template-unsafe]: the sandbox refuses this access; got {what}" in text


@pytest.mark.parametrize("source", ["{{ lipsum() }}", "{{ links | random }}"])
def test_nothing_is_drawn_at_random(faults: Faults, source: str) -> None:
    (text,) = faults(
        {"manifests/prompts/main.yaml": ("      You host {{ room.title }}.\n", f"      You host. {source}\n")}
    )
    assert "error[template-" in text


def test_ordinary_separators_and_filters_are_no_attributes(faults: Faults) -> None:
    source = "{{ links | map('upper') | join('_') }} {{ links | map(attribute='title') | join(' _ ') }}"
    assert (
        faults({"manifests/prompts/main.yaml": ("      You host {{ room.title }}.\n", f"      You host. {source}\n")})
        == []
    )
