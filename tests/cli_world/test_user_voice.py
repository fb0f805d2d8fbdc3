"""`user: llm`: viewers' messages in other words, by a model behind a cache, held to what the script says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnessctl.errors import ModelError
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Gold, GoldCall, Scenario
from harnessctl.runtime.protocols import ModelReply, ModelRequest
from harnessctl.simulate.user import WORDINGS, CachedVoice, EndpointVoice
from harnessctl.simulate.user_checks import kept_words, voice_fault


class FakeModel:
    """Answers as `behave(asked)` says: wordings, a text, or an error."""

    name = "fake"
    template = None

    def __init__(self, behave: Callable[[dict[str, Any]], Any]) -> None:
        self.behave = behave
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        asked = json.loads(request.messages[-1]["content"])
        self.asked.append(asked)
        said = self.behave(asked)
        if isinstance(said, Exception):
            raise said
        return ModelReply(content=said if isinstance(said, str) else json.dumps({"wordings": said}))

    async def aclose(self) -> None:
        """Nothing is open."""


async def no_sleep(seconds: float) -> None:
    del seconds


def scenario(text: str, number: int = 0, language: str = "en", **known: Any) -> Scenario:
    return Scenario(
        id=f"s-{number}",
        request=CommentInput(id=f"s-{number}", messages=[ViewerMessage(text, "Bo")]),
        harness="shop",
        intent="price",
        family="price",
        language=language,
        gold=Gold(known=known, calls=[GoldCall(tool="search", arguments={"query": known.get("name", "")})]),
    )


def prepared(tmp_path: Path, scenarios: list[Scenario], behave: Callable[[dict[str, Any]], Any]) -> EndpointVoice:
    voice = EndpointVoice(FakeModel(behave), tmp_path, sleep=no_sleep)
    asyncio.run(voice.prepare(scenarios))
    return voice


def test_messages_are_reworded_and_nothing_else_is(tmp_path):
    script = [scenario("How much is the teapot?", n, name="teapot", price=89) for n in range(30)]
    voice = prepared(tmp_path, script, lambda a: ["teapot price?", "whats the teapot cost", "price of teapot pls"])
    said = [voice.reworded(s) for s in script]
    texts = {s.request.viewer_messages()[0].text for s in said}
    assert texts == {"teapot price?", "whats the teapot cost", "price of teapot pls"}
    assert (voice.said, voice.script, voice.refused) == (30, 0, {})
    for before, after in zip(script, said, strict=True):
        assert after.gold == before.gold
        assert after.request.viewer_messages()[0].viewer == "Bo"
        assert (after.id, after.request.id) == (before.id, before.id)


def test_equal_caches_give_equal_scenarios_without_a_model(tmp_path):
    script = [scenario(f"How much is number {n}?", n) for n in range(8)]
    voice = prepared(tmp_path, script, lambda a: [a["text"].replace("How much is", "price of"), "nope"])
    assert voice.asked == 8
    first = [voice.reworded(s) for s in script]
    assert (
        [CachedVoice(tmp_path).reworded(s) for s in script]
        == first
        == [voice.reworded(s) for s in reversed(script)][::-1]
    )
    again = prepared(tmp_path, script, lambda a: ["never asked"])
    assert again.asked == 0


def test_a_text_that_the_cache_does_not_hold_keeps_its_script(tmp_path):
    voice = CachedVoice(tmp_path / "none")
    one = scenario("How much is it?")
    assert voice.reworded(one) == one
    assert (voice.said, voice.script) == (0, 1)


def test_wordings_that_do_not_hold_are_refused_and_counted(tmp_path):
    script = scenario("Not in red: how much is link 3, the teapot?", name="teapot")
    answers = [
        "not red, teapot link 3 price?",
        "not red, teapot link 4 price?",
        "not red, the pot at link 3?",
        "teapot link 3 in red, price?",
        "不要红色,teapot link 3多少钱",
        "not red teapot link 3 " * 9,
        "**not** red teapot link 3?",
        script.request.viewer_messages()[0].text,
    ]
    voice = prepared(tmp_path, [script], lambda a: answers)
    assert voice.reworded(script).request.viewer_messages()[0].text == answers[0]
    refused = {"name": 2, "negation": 1, "language": 1, "length": 1, "markup": 1, "same": 1}
    assert dict(voice.refused) == refused


def test_a_model_that_writes_nonsense_leaves_the_script(tmp_path):
    script = [scenario("How much is it?")]
    voice = prepared(tmp_path, script, lambda a: "I would rather not")
    assert voice.reworded(script[0]) == script[0]
    assert "not the JSON" in voice.failures[0]
    assert voice.asked == 2


def test_an_endpoint_that_fails_now_and_then_is_asked_again(tmp_path):
    script = [scenario("How much is it?")]
    answers = iter([ModelError("busy", retryable=True), ["what does it cost"]])
    voice = prepared(tmp_path, script, lambda a: next(answers))
    assert voice.reworded(script[0]).request.viewer_messages()[0].text == "what does it cost"


def test_an_endpoint_that_is_not_to_be_had_is_an_error(tmp_path):
    script = [scenario(f"How much is number {n}?", n) for n in range(20)]
    for error in (ModelError("down", retryable=True), ModelError("no such key", retryable=False)):
        with pytest.raises(ModelError):
            prepared(tmp_path, script, lambda a, error=error: error)


def test_a_damaged_entry_is_asked_for_again(tmp_path):
    script = [scenario("How much is it?")]
    prepared(tmp_path, script, lambda a: ["what does it cost"])
    (entry,) = tmp_path.rglob("*.json")
    entry.write_bytes(entry.read_bytes()[:30])
    assert CachedVoice(tmp_path).reworded(script[0]) == script[0]
    voice = prepared(tmp_path, script, lambda a: ["its price"])
    assert voice.reworded(script[0]).request.viewer_messages()[0].text == "its price"


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("链接3多少钱", "3号链接啥价", None),
        ("链接3多少钱", "三号链接多少钱", "name"),
        ("有没有红色的", "红色的有吗", None),
        ("我不要红色", "我要红色", "negation"),
        ("is it 89 or 98?", "so 98 or 89?", None),
        ("is it 89?", "is it 89 or 98?", "number"),
        ("Where is order #W2378156?", "order #W2378156 where", None),
        ("Where is order #W2378156?", "my order 2378156 where", "name"),
        ("don't you have cups", "have you no cups", None),
        ("hello", "hi <b>there</b>", "markup"),
        ("hello", "hi\nthere", "markup"),
        ("hello", "Hello ", "same"),
        ("hello", "", "same"),
    ],
)
def test_what_a_wording_must_keep(before, after, fault):
    assert voice_fault(before, after, kept_words(before, scenario(before))) == fault


def test_names_that_gold_was_drawn_with_are_kept():
    assert kept_words("is the teapot nice", scenario("", name="teapot", room="nice", stock=4)) == ["nice", "teapot"]
    assert kept_words("hello", scenario("", name="hello")) == []


def test_sample_through_an_endpoint_and_again_without_it(harnessctl, shop, chat):
    url, asked = chat.url, chat.asked
    keys = ("n=10", "seed=2", "model.name=m", "model.stream=false")
    script = harnessctl("world", "sample", *keys, cwd=shop)
    done = harnessctl("world", "sample", *keys, "user=llm", f"model.base_url={url}")
    assert done.code == 0, done.err
    texts = [json.loads(line)["request"]["messages"][0]["text"] for line in script.out.splitlines()]
    said = [json.loads(line)["request"]["messages"][0]["text"] for line in done.out.splitlines()]
    for before, after in zip(texts, said, strict=True):
        assert after in (f"hey, {before}", f"{before} please")
    assert "10 messages in other words, 0 as the script has them" in done.err
    assert json.loads(asked[0]["messages"][-1]["content"])["count"] == WORDINGS
    count = len(asked)
    assert count == len(set(texts))
    again = harnessctl("world", "sample", *keys, "user=llm", "model.base_url=http://127.0.0.1:9/v1")
    assert (again.code, again.out, len(asked)) == (0, done.out, count)


def test_an_endpoint_that_is_down_is_said(harnessctl, shop):
    done = harnessctl("world", "sample", "user=llm", "model.name=m", "model.base_url=http://127.0.0.1:9/v1", cwd=shop)
    assert done.code == 1
    assert "127.0.0.1:9" in done.err
    assert done.out == ""


def test_an_evaluation_asks_nobody_and_says_whose_words_it_heard(harnessctl, shop, chat):
    keys = ("n=6", "seed=2", "user=llm")
    none = harnessctl("eval", "live-qa", *keys, cwd=shop)
    assert none.code == 0, none.err
    assert "viewers: 0 messages in a model's words, 6 as the script has them" in none.err
    assert "harnessctl world sample user=llm n=6 seed=2" in none.err
    harnessctl("world", "sample", *keys, "model.name=m", f"model.base_url={chat.url}")
    heard = harnessctl("eval", "live-qa", *keys)
    assert heard.code == 0, heard.err
    assert "viewers: 6 messages in a model's words, 0 as" in heard.err
    lines = (shop / "runs/latest-eval/scenarios.jsonl").read_text().splitlines()
    texts = [json.loads(line)["request"]["messages"][0]["text"] for line in lines]
    assert all(text.startswith("hey, ") or text.endswith(" please") for text in texts)
    assert "viewers:" not in harnessctl("eval", "live-qa", "n=2").err
