"""The operators of skills and of their rules, each by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from harnessctl.augment.operators.skill_rename import OPERATOR as RENAME
from harnessctl.augment.skill_pool import entries, style_of
from harnessctl.augment.variants import Augmenter
from harnessctl.augment.words import parts_of
from harnessctl.bundle import Bundle
from harnessctl.bundle.state import HarnessState, Skill
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes
from harnessctl.manifests.specs.envelope import Operator
from harnessctl.records.scenario import Needs
from harnessctl.runtime.surface import SurfaceView

Make = Callable[..., Augmenter]


def changes(augmenter: Augmenter, count: int = 40, needs: Needs | None = None) -> list[Changes]:
    return [augmenter.variant(seed=7, number=number, needs=needs).variation.changes for number in range(count)]


def test_masks_leave_what_is_pinned_and_one_of_each_kind(kiosk: Bundle, augmenter: Make):
    masked = [set(made.masked_skills) for made in changes(augmenter(kiosk, {"skill-mask": Operator(rate=0.9)}))]
    assert set().union(*masked) == {"free-one", "free-two", "named-by-two", "free-three"}
    assert all("free-two" in found for found in masked if "named-by-two" in found), "its user names it"
    strategies = {"free-two", "named-by-two", "free-three"}
    assert all(strategies - found for found in masked)


def test_masks_keep_what_a_sample_needs(kiosk: Bundle, augmenter: Make):
    made = augmenter(kiosk, {"skill-mask": Operator(), "rule-mask": Operator()})
    needs = Needs(skills=["free-one"], rules=["named-by-two#once", "free-one#name"])
    for found in changes(made, 5, needs):
        assert not {"free-one", "named-by-two"} & set(found.masked_skills)
        kept = {"name", "needed", "enforced", "base", "look", "told", "short"}
        assert not kept & set(found.masked_rules.get("free-one", ()))
        assert "once" not in found.masked_rules.get("named-by-two", ())


def test_rule_masks_keep_ties(kiosk: Bundle, augmenter: Make):
    users = {"needed": "name", "name": "thanks", "base": "enforced"}
    seen: set[str] = set()
    for made in changes(augmenter(kiosk, {"rule-mask": Operator(rate=0.6)}), 80):
        masked = set(made.masked_rules.get("free-one", ()))
        seen |= masked
        assert all(users[rule] in masked for rule in masked if rule in users)
    assert seen == {
        "name", "needed", "thanks", "smile", "wave", "enforced", "base", "exact", "take", "hand", "change"
    }  # fmt: skip


def test_a_masked_rule_hands_its_edge_on(kiosk: Bundle, augmenter: Make):
    made = augmenter(kiosk, {"rule-mask": Operator(allow=["free-one#smile"]), "rule-reorder": Operator()})
    for number in range(20):
        state = made.variant(seed=1, number=number).bundle.state
        rules = {rule.id: rule for rule in skill_of(state, "free-one").rules}
        assert "smile" not in rules
        assert rules["wave"].after == "thanks"
        order = skill_of(state, "free-one").body[1].rules
        assert order.index("thanks") < order.index("wave")


def test_a_skill_keeps_a_rule(live: Bundle, kiosk: Bundle, augmenter: Make):
    for bundle in (live, kiosk):
        made = augmenter(bundle, {"rule-mask": Operator()})
        state = made.variant(seed=1, number=0).bundle.state
        assert all(skill.rules for skill in state.skills)
        assert sum(len(s.rules) for s in state.skills) < sum(len(s.rules) for s in bundle.state.skills)


def test_rules_move_within_their_list_and_behind_what_they_come_after(kiosk: Bundle, augmenter: Make):
    made = augmenter(kiosk, {"rule-reorder": Operator(allow=["free-one"])})
    before = skill_of(kiosk.state, "free-one")
    firsts: Counter[str] = Counter()
    for number in range(60):
        skill = skill_of(made.variant(seed=1, number=number).bundle.state, "free-one")
        assert [sorted(part.rules) for part in skill.body] == [sorted(part.rules) for part in before.body]
        order = skill.body[1].rules
        assert order.index("thanks") < order.index("smile") < order.index("wave")
        assert skill.body[3].rules == ["take", "hand", "change"], "a numbered list says an order"
        firsts[order[0]] += 1
    assert len(firsts) > 4


def test_numbered_lists_move_where_the_envelope_allows_it(kiosk: Bundle, augmenter: Make):
    made = augmenter(kiosk, {"rule-reorder": Operator(allow=["free-one"], options={"numbered": True})})
    orders = {
        tuple(skill_of(made.variant(seed=1, number=number).bundle.state, "free-one").body[3].rules)
        for number in range(30)
    }
    assert len(orders) > 2


def test_a_verbatim_rule_keeps_its_words(kiosk: Bundle, augmenter: Make):
    made = augmenter(kiosk, {"rule-paraphrase": Operator()})
    texts = {place for found in changes(made, 10) for place in found.texts}
    assert "skills/free-one/rules/exact" not in texts
    assert "skills/free-one/rules/look" in texts


def test_wordings_keep_references(live: Bundle, augmenter: Make):
    made = augmenter(live, {"rule-paraphrase": Operator(), "skill-describe": Operator()})
    before = {f"skills/{s.name}/rules/{rule.id}": rule.text for s in live.state.skills for rule in s.rules}
    before |= {f"skills/{s.name}/description": s.description for s in live.state.skills}
    seen: dict[str, set[str]] = {}
    for found in changes(made, 30):
        for place, text in found.texts.items():
            assert text != before[place]
            assert refs(text) == refs(before[place])
            seen.setdefault(place, set()).add(repr(text))
    assert len(seen) >= 0.9 * len(before)
    assert sum(map(len, seen.values())) > 4 * len(seen)


@pytest.mark.parametrize("operator", ["skill-synthetic", "skill-noise"])
def test_added_skills_are_like_the_parents_own(
    live: Bundle, mini: Bundle, kiosk: Bundle, retail: Bundle, augmenter: Make, operator: str
):
    pool = "synthetic" if operator == "skill-synthetic" else "noise"
    for bundle in (live, mini, kiosk, retail):
        made = augmenter(bundle, {operator: Operator(count=[2, 4])})
        kinds = {skill.kind for skill in bundle.state.skills}
        own = {skill.name for skill in bundle.state.skills}
        subjects = {part for name in own for part in parts_of(name)}
        places: set[int] = set()
        seen: set[str] = set()
        for number in range(25):
            variant = made.variant(seed=1, number=number)
            added = variant.variation.changes.added_skills
            assert 2 <= len(added) <= 4
            order = [skill.name for skill in variant.bundle.state.skills]
            assert [name for name in order if name in own] == [s.name for s in bundle.state.skills]
            for skill in added:
                assert skill.kind in kinds
                assert 3 <= len(skill.rules) <= 5
                assert subjects.isdisjoint(parts_of(skill.name))
                assert not re.search(r"[\d`]", repr([skill.description, [rule.text for rule in skill.rules]]))
                assert skill.body[0].text[0].endswith(style_of(bundle.state).head)
                places.add(order.index(skill.name))
                seen.add(skill.name)
                body = SurfaceView(variant.bundle.state).skill_body(skill.name)
                assert body.count("\n- ") == len(skill.rules)
        assert len(places) > 3, "at any place"
        assert len(seen) > 8
        assert seen <= {entry.name for entry in entries(pool, "en")}


def test_a_small_harness_describes_them_in_few_words(live: Bundle, mini: Bundle, augmenter: Make):
    for bundle, most in ((mini, 40), (live, 200)):
        made = augmenter(bundle, {"skill-synthetic": Operator(count=[3, 3])})
        added = made.variant(seed=1, number=1).variation.changes.added_skills
        longest = max(len(str(skill.description[0])) for skill in added)
        assert longest < most
        assert (longest > 40) == (bundle is live)
        assert ("\n\n## " in str(added[0].body[0].text[0])) == (bundle is live), "a lead where the others have one"


def test_a_chinese_harness_gets_chinese_ones(mini: Bundle, augmenter: Make):
    chinese = msgspec.structs.replace(
        mini.state,
        skills=[
            msgspec.structs.replace(
                skill,
                description=["回答观众提出的问题，并给出建议"],
                rules=[msgspec.structs.replace(rule, text=["先查询商品，再回答价格和库存。"]) for rule in skill.rules],
            )
            for skill in mini.state.skills
        ],
        prompt=msgspec.structs.replace(mini.state.prompt, blocks=mini.state.prompt.blocks[1:]),
        tools=[msgspec.structs.replace(tool, description=["查询直播间里的商品信息"]) for tool in mini.state.tools],
    )
    bundle = msgspec.structs.replace(mini, state=chinese)
    made = augmenter(bundle, {"skill-noise": Operator(count=[2, 2])})
    for skill in made.variant(seed=1, number=1).variation.changes.added_skills:
        assert all(
            re.search(r"[\u4e00-\u9fff]", str(text)) for text in (skill.description, *(r.text for r in skill.rules))
        )


def test_the_pools_have_enough_in_each_language():
    for pool in ("synthetic", "noise"):
        for language in ("en", "zh"):
            found = entries(pool, language)
            assert len({entry.name for entry in found}) >= 24
            assert {entry.kind for entry in found} == {"reply", "strategy"}
            assert all(len(entry.rules) == 4 for entry in found)
    assert not {e.name for e in entries("noise", "en")} & {e.name for e in entries("synthetic", "en")}


def test_added_skills_are_renamed_and_reordered_as_any_other(live: Bundle, augmenter: Make):
    operators = {
        "skill-synthetic": Operator(count=[3, 3]),
        "skill-mask": Operator(rate=0.3),
        "skill-rename": Operator(options={"styles": ["opaque"]}),
        "skill-reorder": Operator(),
    }
    made = augmenter(live, operators)
    for number in range(10):
        variant = made.variant(seed=1, number=number)
        shown = [offer["name"] for offer in SurfaceView(variant.bundle.state).skill_offers]
        assert all(name.startswith("s-") for name in shown)
        found = variant.variation.changes
        assert sorted(found.skill_order) == sorted(skill.name for skill in variant.bundle.state.skills)
        assert set(found.skills) == set(found.skill_order)


def test_rename_gives_each_style_that_the_envelope_has(live: Bundle, augmenter: Make):
    made = augmenter(live, {"skill-rename": Operator(options={"styles": ["plain", "opaque"]})})
    names = [name for found in changes(made, 10) for name in found.skills.values()]
    opaque = sum(name.startswith("s-") for name in names)
    assert 0.3 < opaque / len(names) < 0.7
    assert RENAME.options["styles"] == ["synonym", "plain", "opaque"]


def skill_of(state: HarnessState, name: str) -> Skill:
    return next(skill for skill in state.skills if skill.name == name)


def refs(text: list[str | Ref]) -> list[Ref]:
    return sorted((part for part in text if isinstance(part, Ref)), key=repr)
