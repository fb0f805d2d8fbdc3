"""Errors of naturalness: each kind on what has it and on what has not, in English and Chinese, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.assembly import open_world_of
from harnessctl.compile.revision import compiled
from harnessctl.score.naturalness import KINDS, findings
from harnessctl.simulate.obeying import FILLERS
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.wording import NEUTRAL

HAS: list[tuple[str, str, str, str]] = [
    ("uncertainty", "en", "I'm not sure about the size of link 3.", "I'm not sure"),
    ("uncertainty", "en", "I can’t confirm whether it fits.", "I can’t confirm whether"),
    ("uncertainty", "en", "There is no information on that.", "There is no information"),
    ("uncertainty", "en", "As far as I know it is cotton.", "As far as I know"),
    ("uncertainty", "zh", "这个我不太清楚哦。", "我不太清楚"),
    ("uncertainty", "zh", "目前没有相关信息。", "没有相关信息"),
    ("uncertainty", "zh", "资料里没有写保修期。", "资料里没有写"),
    ("uncertainty", "zh", "我暂时无法确认库存。", "我暂时无法确认"),
    ("system-talk", "en", "The tool says 89 yuan.", "The tool"),
    ("system-talk", "en", "According to the data it is in stock.", "According to the data"),
    ("system-talk", "en", "The request timed out, one more time.", "timed out"),
    ("system-talk", "zh", "系统显示还有9件。", "系统显示"),
    ("system-talk", "zh", "根据查询结果，3号是89元。", "根据查询结果"),
    ("tool-name", "en", "I called get_product for you.", "get_product"),
    ("tool-name", "zh", "用get_product()看过了。", "get_product()"),
    ("process-talk", "en", "Let me check the price of link 3.", "Let me check"),
    ("process-talk", "en", "One moment, please.", "One moment, please"),
    ("process-talk", "zh", "我帮你查一下。", "我帮你查一下"),
    ("process-talk", "zh", "稍等，马上说。", "稍等"),
    ("role-talk", "en", "As an AI assistant I cannot eat.", "As an AI assistant"),
    ("role-talk", "en", "I'm not allowed to say that.", "I'm not allowed to"),
    ("role-talk", "zh", "作为AI助手，我没有味觉。", "作为AI助手"),
    ("stiffness", "en", "Dear customer, link 3 is 89 yuan.", "Dear customer"),
    ("stiffness", "en", "Please be advised that it is sold out.", "Please be advised"),
    ("stiffness", "zh", "尊敬的客户，3号是89元。", "尊敬的客户"),
    ("stiffness", "zh", "如有任何疑问请联系客服。", "如有任何疑问"),
    ("template-leak", "en", "Link {link_id} is 89 yuan.", "{link_id}"),
    ("template-leak", "en", "Hello [viewer name], it is 89 yuan.", "[viewer name]"),
    ("template-leak", "en", "The colour is null.", "null"),
    ("template-leak", "zh", "3号是XX元。", "XX"),
    ("template-leak", "zh", "回复：3号是89元。", "回复："),
    ("template-leak", "en", "<think>price</think>89 yuan", "<think>price</think>"),
    ("markup", "en", "It is **89 yuan**.", "**89 yuan**"),
    ("markup", "en", "Here:\n- 89 yuan\n- in stock", "- 89 yuan\n- in stock"),
    ("markup", "zh", "看`3号`。", "`3号`"),
    ("apology-loop", "en", "Sorry, so sorry, link 3 is gone.", "sorry"),
    ("apology-loop", "zh", "抱歉，真的不好意思。", "不好意思"),
    ("repetition", "en", "It is 89 yuan. It is 89 yuan.", "It is 89 yuan"),
    ("repetition", "en", "we have it we have it in red", "we have it we have it"),
    ("repetition", "zh", "3号是89元。3号是89元！", "3号是89元"),
    ("mixed-language", "en", "It is 89 yuan, 有货的。", "有货的。"),
    ("mixed-language", "zh", "3号是89元，please tap the link哦。", "please tap the link"),
]
HAS_NOT: list[tuple[str, str]] = [
    ("en", "Link 3 is the Oxford shirt for 89 yuan, cotton, 5 x 5 cm."),
    ("en", "Sorry, link 3 is gone; link 4 still has it in black, M."),
    ("en", "Please tap link 3, its page shows it. Customer service helps you too."),
    ("en", "You can be sure of that: it is clear, light and machine washable."),
    ("en", "The tool set has 12 pieces, and the storage system fits under a bed."),
    ("en", "Yes, yes, it comes in red. No, thank you!"),
    ("en", "I know that feeling, haha. Take your time and look around."),
    ("en", "What size do you take? I see you like blue."),
    ("zh", "3号是SPF50的防晒，89元，T恤面料是Oxford纺。"),
    ("zh", "抱歉，3号卖完了，点开链接看看别的颜色。"),
    ("zh", "帮你看了，这单已发货，慢慢等哦。"),
    ("zh", "麻烦点进去看一下，详情页上写着呢。"),
    ("zh", "放心，7天内都能退，客服会跟进。"),
    ("zh", "好的好的，下一个就讲3号。"),
]


@pytest.mark.parametrize(("kind", "language", "text", "place"), HAS, ids=lambda value: str(value)[:24])
def test_an_error_is_found_at_its_place(kind: str, language: str, text: str, place: str) -> None:
    found = [one for one in findings(text, language) if one.kind == kind]
    assert [one.text for one in found] == [place]
    assert text[found[0].start : found[0].end] == place


@pytest.mark.parametrize(("language", "text"), HAS_NOT, ids=lambda value: str(value)[:24])
def test_what_a_host_says_has_none(language: str, text: str) -> None:
    assert findings(text, language) == []


def test_every_kind_is_tried_in_both_languages() -> None:
    tried = {(kind, language) for kind, language, _, _ in HAS}
    assert {kind for kind, _ in tried} == set(KINDS)
    assert {kind for kind in KINDS if {(kind, "en"), (kind, "zh")} <= tried} == set(KINDS)


def test_each_place_counts_and_kinds_keep_their_order() -> None:
    said = "I'm not sure, let me check the database; I'm not sure."
    assert [one.kind for one in findings(said, "en")] == ["uncertainty", "uncertainty", "system-talk", "process-talk"]


def test_a_third_language_is_no_mixture() -> None:
    assert [one.kind for one in findings("Es kostet 89 Yuan, 有货。", "de")] == []


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_gold_of_the_shipped_world_is_natural(repository: Path, harness: str) -> None:
    bundle = compiled(repository, harness)
    world = open_world_of(repository, bundle, None)
    assert world is not None
    with world:
        for scenario in Scenarios.open(world, bundle).sample(3, 250):
            assert scenario.gold is not None
            if "+" in scenario.family:
                continue  # two fallbacks in one may say the same twice
            for text in (*scenario.gold.replies, *scenario.gold.fallbacks):
                assert findings(text, scenario.language) == [], text


def test_what_the_oracle_falls_back_on_is_natural() -> None:
    for table in (FILLERS, NEUTRAL):
        for language, texts in table.items():
            assert [text for text in texts if findings(text, language)] == []


@given(st.text(alphabet="abc {}[]*`_.!?不确定系统查sorry号 \n", max_size=80), st.sampled_from(["en", "zh"]))
def test_any_text_has_its_errors_where_they_are_said_to_be(text: str, language: str) -> None:
    for one in findings(text, language):
        assert 0 <= one.start < one.end <= len(text)
        assert text[one.start : one.end] == one.text
        assert one.kind in KINDS
