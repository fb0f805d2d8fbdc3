"""SharedDigest: the digest of `state_digest`, whatever has changed."""

from __future__ import annotations

import msgspec
import pytest

from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import Bundle, state_digest
from harnessctl.bundle.shared import SharedDigest
from harnessctl.bundle.state import Action, Hook, Limit, Skill, Surface, Tool
from harnessctl.errors import StorageError


def test_it_is_the_digest_of_every_variant(live: Bundle, mini: Bundle, retail: Bundle, rewriter: RulesRewriter):
    for parent in (live, mini, retail):
        shared = SharedDigest(parent.state)
        assert shared.digest(parent.state) == parent.digest
        augmenter = Augmenter(parent, load_envelope(None, "wide", parent), rewriter=rewriter)
        for number in range(10):
            state = augmenter.variant(seed=9, number=number).bundle.state
            assert shared.digest(state) == state_digest(state)
            assert shared.digest(msgspec.convert(msgspec.to_builtins(state), type(state))) == state_digest(state)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [Tool(name="t", description=["d"], group="g", timeout_s=3.0, parameters={"ö": 1.0, "a": {"maximum": 1e-7}}, docs={"/properties/é": ["x"]})]},
        {"tools": [Tool(name="t", description=[], group="g", timeout_s=0.5, result={}, run={"http": {"b": 2.0, "a": 1}}, final={"reply": "x"})]},
        {"hooks": [Hook(id="h", event="stop", check={"max_chars": 80.0}, timeout_s=float("5"))]},
        {"hooks": [Hook(id="h", event="stop", check={"max_chars": 80.0})]},
        {"hooks": [Hook(id="h", event="stop", when={"é": [1.0, 2.5]}, timeout_s=2.0, then=Action(action="warn"))]},
        {"hooks": []},
        {"skills": [Skill(name="s", kind="reply", description=["\x1f\"\\\u2028é😀"], body=[])]},
        {"skills": []},
        {"limits": {"a": Limit(value=2.0, range=[1, 3.5]), "ü": Limit(value=1e21)}},
        {"limits": {}},
        {"code": {"ä": "x", "a": "y"}, "files": {"f": "\x00"}},
        {"scores": {"a": "/b"}, "reply_schema": {"maximum": 4.0}, "servers": {"s": {"timeout": 1.0}}},
        {"reply_schema": {}},
        {"surface": Surface(tools={"ü": "x", "z": "y"}, parameters={"t": {"é": "y", "a": "b"}})},
        {"surface": Surface(parameter_order={"\uffff": ["a"], "\U0001f600": ["b"]})},
        {"session_keep": ["calls"], "route_default": "private"},
    ],
)  # fmt: skip
def test_it_is_exact_where_numbers_and_keys_are_odd(mini: Bundle, fields: dict):
    state = msgspec.structs.replace(mini.state, **fields)
    for parent in (mini.state, state):
        assert SharedDigest(parent).digest(state) == state_digest(state)


def test_what_canonical_json_cannot_hold_is_refused(mini: Bundle):
    skill = Skill(name="s", kind="reply", description=["\ud800"], body=[])
    with pytest.raises(StorageError):
        SharedDigest(mini.state).digest(msgspec.structs.replace(mini.state, skills=[skill]))
