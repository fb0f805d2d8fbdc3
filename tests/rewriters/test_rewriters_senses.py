"""Words that mean something else in another place: what must not become of them, sentence by sentence.

Law h reads words and cannot see these; the lexicon and the clauses have to.
"""

from __future__ import annotations

import re

import pytest

from harnessctl.augment.operator import TextKind
from harnessctl.augment.rewriters.rules import RulesRewriter

#: (what it is about, text, a pattern that none of its wordings may hold)
SENSES: list[tuple[str, str, str]] = [
    ("if that asks", "Do not tell the viewer if the item is gone unless they ask.", r"in case the|when the|^If"),
    ("if that asks", "Check with the buyer if the size is right.", r"when the|in case the|^If"),
    ("when that asks", "Tell the viewer when the parcel ships.", r"[Ii]f the|[Ww]henever|^When"),
    ("if that asks", "Find out if the parcel has left.", r"when the|in case|^If"),
    ("when that asks", "Make clear when the sale ends.", r"if the|whenever|^When"),
    ("when that asks", "Confirm whether and when it ships.", r"whenever|if it"),
    ("until that belongs to the infinitive", "Ask the viewer to wait until the host is back.", r"^Until"),
    ("before that belongs to the infinitive", "Tell them to pay before the parcel ships.", r"^Before"),
    ("list in its order", "Sum up the order as follows: items, total, address.", r"address, total|total, address, items|total, items"),
    ("list in its order", "Write in this format: name, price, stock.", r"stock, price|price, stock, name|stock, name"),
    ("in general terms", "Give the answer in general terms.", r"generally|broadly"),
    ("in full sentences", "Answer in full sentences.", r"completely"),
    ("is used when", "This skill is used when a viewer asks for help.", r"is applies|is for cases"),
    ("object after sell", "Do not sell alcohol.", r"products|sales"),
    ("object after push", "Do not push the button.", r"pushy"),
    ("claim of being", "Never claim that you are a person.", r"act as|work as|serve as|role"),
    ("deny a claim", "Neither confirm nor deny.", r"turn down"),
    ("mention that", "Do not mention that prices may change.", r"name that|refer to that|bring up that"),
    ("verb without object", "Answer in at most 200 characters.", r"to in\b"),
    ("verb without object", "Answer only if the question is clear.", r"to only"),
    ("verb without object", "Answer again if they ask again.", r"to (?:again|once)"),
    ("since of time", "Since Monday the shop is closed.", r"[Bb]ecause|[Gg]iven"),
    ("because of", "Because of the strike no parcel is sent.", r"[Ss]ince of|[Gg]iven that of"),
    ("noun like a verb", "A mention of the item is enough.", r"[Nn]ame of"),
    ("noun like a verb", "Changes to the order require approval.", r"Alters|Modifies|Updates"),
    ("noun like a verb", "Name tags are not sold.", r"[Pp]lease name"),
    ("object with a complement", "Keep the name of the buyer private.", r"[Rr]etain"),
    ("two objects", "Show the viewer the card.", r"[Dd]isplay|[Pp]resent"),
    ("phrasal verb", "Give up after two tries.", r"[Pp]rovide|[Ss]upply"),
    ("how, not but", "However the user puts it, stay calm.", r"[Ss]till the|[Ee]ven so"),
    ("multiple of", "Round to a multiple of 7.", r"several|number of|various"),
    ("at once of number", "Do not ask two questions at once.", r"immediately|straight|right away"),
    ("due to do", "The parcel is due to arrive today.", r"because|owing"),
    ("verb like a noun", "If the user requests a refund, hand over.", r"requests of|what the user"),
    ("no duty", "You need to do nothing if the order is cancelled.", r"must do nothing"),
    ("inverted should", "Should the user ask, repeat it.", r"[Oo]ught"),
    ("bare use", "Use when users ask for a chart.", r"chart, use"),
    ("leaning clause", "Pending orders can be changed; delivered ones returned.", r"\. "),
    ("list that points back", "A product with its variants, their options, prices and stock.", r"their options and its|, its variants"),
    ("list in a list", "Made of a poster, piece of art, design, or other piece.", r"other piece,"),
    ("name with a capital", "Search Engine Optimization for shops.", r"search Engine"),
    ("name with a dot", "Next.js and its caching.", r"next\.js"),
    ("emphasis inside a phrase", "Ask before ANY change.", r"before any|any "),
    ("doubled letter", "Do not transfer to a human.", r"transfering"),
    ("greeting", "Say hello before you start.", r"[Ss]tate hello|[Mm]ention hello"),
    ("zh 别墅", "别墅的价格不公开。", r"(?:请不要|切勿|避免|请勿)墅"),
    ("zh 若干", "若干商品参加活动，先确认库存。", r"(?<!若)干商品"),
    ("zh 只 as a measure", "三只猫一箱，10只起卖。", r"仅"),
    ("zh 出现在", "价格出现在结果中才能说。", r"出目前|出当前"),
    ("zh 主要是", "主要是为了安全。", r"主如|主若|主假|主倘"),
    ("zh 应当天", "订单应当天发出，价格要准确。", r"应该天"),
    ("zh 要不要", "问用户要不要发票。", r"要勿|要别"),
    ("zh 不得不", "不得不拒绝用户时，说明原因。", r"不能不|不可不|(?<!不得)不拒绝"),
    ("zh 不用 of things", "不用感叹号，语气友好。", r"无需|不必"),
    ("zh 使用户", "使用户满意，语气友好。", r"采用户"),
    ("zh compounds", "使用说明书，看显示器，选择题按确认键。", r"讲明书|展示器|挑选题|核实键"),
    ("zh 归…所有", "包装归顾客所有。", r"全部"),
    ("zh 质量问题", "质量问题优先处理。", r"疑问|提问"),
    ("zh consent", "用户确认后再取消订单。", r"核实|核对"),
    ("zh as in Japanese", "これは例です。テンプレートとして使用してください。", r"."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "never"), [case[1:] for case in SENSES], ids=[f"{c[0]}: {c[1][:24]}" for c in SENSES])
@pytest.mark.parametrize("kind", ["rule", "description"])
def test_no_wording_takes_a_word_for_another(text: str, never: str, kind: TextKind) -> None:
    for wording in RulesRewriter(most=200).wordings([text], kind):
        assert not re.search(never, str(wording[0])), wording


def test_what_is_safe_is_still_reworded() -> None:
    """The guards do not silence the lexicon."""
    for text, expected in [
        ("Answer the question first.", "Reply to the question first."),
        ("If the item is gone, tell the viewer.", "When the item is gone, tell the viewer."),
        ("Because the shop is closed, wait.", "Since the shop is closed, wait."),
        ("The box requires a label.", "The box needs a label."),
        ("如果没有结果，就问。", "没有结果时，就问。"),
        ("只说一次价格。", "仅说一次价钱。"),
    ]:
        assert [expected] in list(RulesRewriter(most=200).wordings([text], "rule"))
