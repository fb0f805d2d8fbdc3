"""The rewriter behind an endpoint, against a real server that answers well, badly, late or not at all."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from rewriters_endpoint import FakeEndpoint, wordings

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.rewriters import open_rewriter
from harnessctl.augment.rewriters.llm import LlmRewriter
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.bundle.text import Ref, Text
from harnessctl.errors import ModelError, UsageError
from harnessctl.runtime.models.endpoint import Endpoint

TOOL = Ref("tool", "get_product")
LOOKUP: Text = ["Call ", TOOL, " before any price is said."]
SHORT: Text = ["Reply in at most ", Ref("limit", "reply_max_chars"), ' characters, never with "hurry".']

Make = Callable[..., LlmRewriter]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def make(endpoint: FakeEndpoint, tmp_path: Path, waits: list[float]) -> Make:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def rewriter(**settings: object) -> LlmRewriter:
        at = Endpoint(model="teacher", base_url=str(settings.pop("base_url", endpoint.url)), key_env=None)
        return LlmRewriter(at, cache=tmp_path / "cache", k=3, sleep=sleep, **settings)  # pyrefly: ignore

    return rewriter


def test_wordings_come_from_the_model_and_keep_references(make: Make, endpoint: FakeEndpoint) -> None:
    endpoint.behave = lambda text, attempt: wordings(
        "Before any price is said, call ⟦1⟧.", "Before any price is mentioned, turn to ⟦1⟧."
    )
    seen: list[tuple[int, int]] = []
    rewriter = make(on_progress=lambda done, total: seen.append((done, total)))
    rewriter.prepare([(LOOKUP, "rule")])
    assert rewriter.wordings(LOOKUP, "rule") == [
        ["Before any price is said, call ", TOOL, "."],
        ["Before any price is mentioned, turn to ", TOOL, "."],
    ]
    assert (rewriter.asked, rewriter.refused, rewriter.fallbacks, rewriter.failures) == (1, 0, 0, [])
    assert seen == [(1, 1)]
    (body,) = endpoint.asked
    assert body["model"] == "teacher"
    asked = json.loads(body["messages"][-1]["content"])
    assert asked["text"] == "Call ⟦1⟧ before any price is said."
    assert asked["placeholders"] == {"⟦1⟧": "the tool `get_product`"}
    assert asked["count"] == 3


def test_quotations_are_placeholders_too(make: Make, endpoint: FakeEndpoint) -> None:
    endpoint.behave = lambda text, attempt: wordings("Never with ⟦2⟧: answer in no more than ⟦1⟧ characters.")
    rewriter = make()
    rewriter.prepare([(SHORT, "rule")])
    assert rewriter.wordings(SHORT, "rule") == [
        ['Never with "hurry": answer in no more than ', Ref("limit", "reply_max_chars"), " characters."]
    ]


def test_what_is_in_the_cache_is_not_asked_again(make: Make, endpoint: FakeEndpoint) -> None:
    first = make()
    first.prepare([(LOOKUP, "rule"), (LOOKUP, "rule"), (SHORT, "rule")])
    assert len(endpoint.asked) == 2
    again = make(base_url="http://127.0.0.1:9/v1")
    again.prepare([(LOOKUP, "rule"), (SHORT, "rule")])
    assert again.asked == 0
    assert again.wordings(LOOKUP, "rule") == first.wordings(LOOKUP, "rule")
    assert again.fallbacks == 0


def test_the_kind_and_the_model_are_part_of_the_key(make: Make, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule"), (LOOKUP, "message")])
    assert len(endpoint.asked) == 2
    other = LlmRewriter(Endpoint(model="another", base_url=endpoint.url), cache=tmp_path / "cache")
    other.prepare([(LOOKUP, "rule")])
    assert len(endpoint.asked) == 3


def test_wordings_alone_asks_nobody_and_falls_back(make: Make, endpoint: FakeEndpoint) -> None:
    rewriter = make()
    assert rewriter.wordings(LOOKUP, "rule") == RulesRewriter().wordings(LOOKUP, "rule")
    assert rewriter.wordings(LOOKUP, "rule") == RulesRewriter().wordings(LOOKUP, "rule")
    assert (rewriter.fallbacks, endpoint.asked) == (1, [])


def test_text_that_breaks_law_h_is_refused_and_counted(make: Make, endpoint: FakeEndpoint) -> None:
    endpoint.behave = lambda text, attempt: wordings(
        "Call ⟦1⟧ after any price is said.",  # another order
        "Call the tool before any price is said.",  # no reference
        "Call ⟦1⟧ and ⟦1⟧ before any price is said.",  # twice
        "Call ⟦2⟧ before any price is said.",  # unknown
        "You may call ⟦1⟧ before any price is said.",  # permission
        "Call ⟦1⟧ before any price is said!",  # no other words
        "Before any price is said, call ⟦1⟧.",
    )
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    assert rewriter.wordings(LOOKUP, "rule") == [["Before any price is said, call ", TOOL, "."]]
    assert (rewriter.refused, rewriter.fallbacks) == (6, 0)


def test_a_text_of_which_all_is_refused_falls_back(make: Make, endpoint: FakeEndpoint) -> None:
    endpoint.behave = lambda text, attempt: wordings("Say prices as you like.")
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    found = rewriter.wordings(LOOKUP, "rule")
    assert found == RulesRewriter().wordings(LOOKUP, "rule")
    assert found
    assert all(not wording_faults(LOOKUP, wording) for wording in found)
    assert (rewriter.refused, rewriter.fallbacks) == (1, 1)


@pytest.mark.parametrize(
    "said", ["Sure! 1. Call it.", '{"wordings": ["a"', '{"wordings": "a"}', '{"texts": []}', '{"wordings": []}', ""]
)
def test_an_answer_that_is_no_json_is_asked_for_once_more(make: Make, endpoint: FakeEndpoint, said: str) -> None:
    good = wordings("Before any price is said, call ⟦1⟧.")
    endpoint.behave = lambda text, attempt: said if attempt == 1 else good
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    assert rewriter.asked == 2
    assert rewriter.wordings(LOOKUP, "rule") == [["Before any price is said, call ", TOOL, "."]]


def test_an_answer_that_stays_no_json_is_named_and_falls_back(make: Make, endpoint: FakeEndpoint) -> None:
    endpoint.behave = lambda text, attempt: "I would rather not."
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    assert rewriter.asked == 2
    assert "Call `get_product` before any price is said." in rewriter.failures[0]
    assert "not the JSON that was asked for" in rewriter.failures[0]
    assert rewriter.wordings(LOOKUP, "rule") == RulesRewriter().wordings(LOOKUP, "rule")
    assert rewriter.fallbacks == 1


def test_a_fence_and_reasoning_around_the_json_are_let_pass(make: Make, endpoint: FakeEndpoint) -> None:
    good = wordings("Before any price is said, call ⟦1⟧.")
    endpoint.behave = lambda text, attempt: f"<think>hm</think>\n```json\n{good}\n```"
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    assert (rewriter.asked, rewriter.failures) == (1, [])
    assert len(rewriter.wordings(LOOKUP, "rule")) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_may_pass_is_tried_again_after_a_wait(
    make: Make, endpoint: FakeEndpoint, waits: list[float], status: int
) -> None:
    good = wordings("Before any price is said, call ⟦1⟧.")
    busy = {"retry-after": "7"} if status == 429 else {}
    endpoint.behave = lambda text, attempt: web.Response(status=status, headers=busy) if attempt < 3 else good
    rewriter = make()
    rewriter.prepare([(LOOKUP, "rule")])
    assert rewriter.asked == 3
    assert len(waits) == 2
    assert waits == [7.0, 7.0] if busy else 0 < waits[0] < waits[1]
    assert len(rewriter.wordings(LOOKUP, "rule")) == 1


def test_an_endpoint_that_hangs_is_left_after_its_time(make: Make, endpoint: FakeEndpoint) -> None:
    good = wordings("Write no more than ⟦1⟧ characters, never with ⟦2⟧.")
    endpoint.behave = lambda text, attempt: None if text.startswith("Call") else good
    rewriter = make(timeout_s=0.2, concurrency=1)
    rewriter.prepare([(SHORT, "rule"), (LOOKUP, "rule")])
    assert "did not answer within 0.2 s" in rewriter.failures[0]
    assert len(rewriter.wordings(SHORT, "rule")) == 1
    assert rewriter.wordings(LOOKUP, "rule") == RulesRewriter().wordings(LOOKUP, "rule")


def test_an_endpoint_that_is_down_is_an_error_and_what_came_is_kept(
    make: Make, endpoint: FakeEndpoint, waits: list[float]
) -> None:
    texts: list[tuple[Text, str]] = [([f"Say thing {number} plainly."], "rule") for number in range(12)]
    endpoint.behave = lambda text, attempt: (
        wordings(f"Note: {text}") if text.startswith("Say thing 0 ") else web.Response(status=500)
    )
    rewriter = make(concurrency=1, tries=2)
    with pytest.raises(ModelError, match="answered 500"):
        rewriter.prepare(texts)  # pyrefly: ignore
    assert len(endpoint.asked) == 1 + 4 * 2
    assert rewriter.wordings(texts[0][0], "rule") == [["Note: Say thing 0 plainly."]]


def test_no_connection_is_an_error_that_names_the_endpoint(make: Make) -> None:
    rewriter = make(base_url="http://127.0.0.1:9/v1", tries=2)
    with pytest.raises(ModelError, match=r"cannot connect to http://127\.0\.0\.1:9/v1"):
        rewriter.prepare([(LOOKUP, "rule")])


def test_a_wrong_key_stops_at_once_and_is_never_shown(
    make: Make,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    secret = "sk-verysecretvalue123"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    endpoint.behave = lambda text, attempt: web.json_response(
        {"error": {"message": f"Incorrect API key provided: {secret}"}}, status=401
    )
    rewriter = make(concurrency=1)
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelError) as caught:
        rewriter.prepare([(LOOKUP, "rule"), (SHORT, "rule")])
    assert endpoint.keys == [f"Bearer {secret}"]
    assert "answered 401" in caught.value.render()
    assert "key_env" in caught.value.hint
    for said in (caught.value.render(), repr(caught.value), caplog.text, repr(rewriter.failures)):
        assert secret not in said
    assert list(tmp_path.rglob("*.json")) == []


def test_a_key_that_is_named_and_not_set_is_a_usage_error(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    rewriter = open_rewriter(
        "llm", cache=tmp_path, model="teacher", base_url=endpoint.url, key_env="REWRITER_KEY_THAT_IS_NOT_SET"
    )
    assert rewriter.wordings(LOOKUP, "rule")
    with pytest.raises(UsageError, match="REWRITER_KEY_THAT_IS_NOT_SET"):
        rewriter.prepare([(LOOKUP, "rule")])  # pyrefly: ignore


def test_a_torn_or_foreign_file_of_the_cache_is_named_and_made_anew(
    make: Make, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    make().prepare([(LOOKUP, "rule"), (SHORT, "rule")])
    files = sorted((tmp_path / "cache").rglob("*.json"))
    assert len(files) == 2
    whole = [file.read_bytes() for file in files]
    files[0].write_bytes(whole[0][: len(whole[0]) // 2])
    files[1].write_bytes(whole[0])
    rewriter = make()
    assert rewriter.wordings(LOOKUP, "rule") == RulesRewriter().wordings(LOOKUP, "rule")
    rewriter.prepare([(LOOKUP, "rule"), (SHORT, "rule")])
    assert len(endpoint.asked) == 4
    assert sorted(said.split(": ")[0] for said in rewriter.cache.corrupt) == [str(file) for file in files]
    assert [file.read_bytes() for file in files] == whole
    assert rewriter.wordings(LOOKUP, "rule") != RulesRewriter().wordings(LOOKUP, "rule")


def test_a_text_with_such_brackets_of_its_own_is_not_sent(make: Make, endpoint: FakeEndpoint) -> None:
    text: Text = ["Say ⟦1⟧ plainly and ask ", TOOL, "."]
    rewriter = make()
    rewriter.prepare([(text, "rule")])
    assert endpoint.asked == []
    assert rewriter.wordings(text, "rule") == RulesRewriter().wordings(text, "rule")


def test_many_texts_are_asked_at_once_within_the_bound(make: Make, endpoint: FakeEndpoint) -> None:
    texts: list[tuple[Text, str]] = [([f"Say thing {number} plainly."], "rule") for number in range(40)]
    seen: list[tuple[int, int]] = []
    rewriter = make(concurrency=4, on_progress=lambda done, total: seen.append((done, total)))
    rewriter.prepare(texts)  # pyrefly: ignore
    assert seen == [(number, 40) for number in range(1, 41)]
    assert len(endpoint.asked) == 40
    assert all(len(rewriter.wordings(text, "rule")) == 2 for text, _ in texts)


def test_an_unknown_rewriter_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'magic'; allowed rules, llm"):
        open_rewriter("magic", cache=tmp_path)
    with pytest.raises(UsageError, match="needs a model"):
        open_rewriter("llm", cache=tmp_path)
    with pytest.raises(UsageError, match="needs a cache folder"):
        open_rewriter("llm", model="teacher")
