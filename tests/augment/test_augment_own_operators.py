"""A user's operators: what they may do, and how one that fails or breaks a law is refused and named."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.operator import Draft, Settings
from harnessctl.augment.stream import Stream
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import Bundle, state_digest
from harnessctl.bundle.state import Action, Framing, Hook, Surface
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import HookChange
from harnessctl.errors import BundleError, LawBroken, OperatorError
from harnessctl.manifests.specs.envelope import Operator
from harnessctl.records.scenario import Needs

Make = Callable[..., Augmenter]


class Own:
    """An operator of a user, which does what its test gives it."""

    name = "own"
    dimension = "skill-content"
    stage = "reword"
    keeps_difficulty = True
    options: Mapping[str, Any] = {}
    reads: frozenset[str] = frozenset()

    def __init__(self, act: Callable[[Draft], None], found: Sequence[str] = ("all",)) -> None:
        self.act = act
        self.found = found

    def targets(self, draft: Draft) -> Sequence[str]:
        return self.found

    def apply(self, target: str, draft: Draft, settings: Settings, stream: Stream) -> bool:
        self.act(draft)
        return True


def own(augmenter: Make, parent: Bundle, act: Callable[[Draft], None], **needs: Any) -> Any:
    operators = {**shipped_operators(), "own": Own(act)}
    made = augmenter(parent, {"tool-rename": Operator(), "own": Operator()}, operators=operators)
    return made.variant(seed=1, number=0, needs=Needs(**needs) if needs else None)


def test_a_users_operator_varies_the_harness(mini: Bundle, augmenter: Make):
    def act(draft: Draft) -> None:
        draft.changes.skill_order = [skill.name for skill in reversed(draft.state.skills)]

    variant = own(augmenter, mini, act)
    assert [skill.name for skill in variant.bundle.state.skills] == ["ask", "chat", "show", "shop", "item"]
    assert variant.variation.operators["own"] == ["all"]


@pytest.mark.parametrize(
    ("change", "law", "place"),
    [
        (lambda c: c.masked_rules.update({"item": ["lookup"]}), "d", "skills/item/rules/lookup"),
        (lambda c: c.masked_skills.extend(["item", "shop", "show", "chat", "ask"]), "d", "skills"),
        (lambda c: c.skills.update({"item": "shop"}), None, ""),
        (lambda c: c.limits.update({"reply_max_chars": 500}), "e", "limits/reply_max_chars"),
        (lambda c: c.texts.update({"skills/item/rules/lookup": ["Say a price first."]}), "h", "skills/item/rules/lookup"),
        (lambda c: c.texts.update({"skills/item/rules/on-air": ["Call ", Ref("tool", "get_nothing"), "."]}), "b", "skills/item/rules/on-air"),
    ],
)  # fmt: skip
def test_a_users_operator_that_breaks_a_law_is_named(
    mini: Bundle, augmenter: Make, change: Callable[[Any], None], law: str | None, place: str
):
    with pytest.raises(LawBroken) as caught:
        own(augmenter, mini, lambda draft: change(draft.changes))
    assert caught.value.operator == "own"
    assert law is None or caught.value.law == law
    assert caught.value.place.startswith(place)
    assert caught.value.render().startswith(f"error: law {caught.value.law} is broken after own: ")


def test_what_takes_from_a_sample_what_it_needs_is_refused(mini: Bundle, augmenter: Make):
    with pytest.raises(LawBroken, match="law d is broken after own: needs: needs the skill shop, which is masked"):
        own(augmenter, mini, lambda draft: draft.changes.masked_skills.append("shop"), skills=["shop"])


def test_what_the_parent_itself_does_not_keep_is_no_operators_fault(mini: Bundle, augmenter: Make):
    with pytest.raises(LawBroken) as caught:
        augmenter(mini, {"rule-reorder": Operator()}).variant(seed=1, number=0, needs=Needs(skills=["item-qa"]))
    assert (caught.value.law, caught.value.operator) == ("d", None)
    assert caught.value.reason == "needs the skill item-qa, which the harness does not have"
    assert caught.value.hint == "the parent itself does not keep it"


def test_a_parent_that_no_model_can_be_shown_is_refused(mini: Bundle, augmenter: Make):
    state = msgspec.structs.replace(mini.state, surface=Surface(tools={"get_product": "search_faq"}))
    parent = msgspec.structs.replace(mini, state=state, digest=state_digest(state))
    with pytest.raises(BundleError, match="are both shown as 'search_faq'"):
        augmenter(parent, {"rule-reorder": Operator()}).variant(seed=1, number=0)


def test_an_operator_that_raises_is_named_with_its_line(mini: Bundle, augmenter: Make):
    def act(draft: Draft) -> None:
        raise SystemExit("nope")

    message = r"the operator own failed at all: SystemExit: nope \(test_augment_own_operators.py:\d+\)"
    with pytest.raises(OperatorError, match=message):
        own(augmenter, mini, act)


def test_a_change_of_what_is_not_there_is_refused(mini: Bundle, augmenter: Make):
    def act(draft: Draft) -> None:
        draft.changes.tools["get_nothing"] = "x"

    with pytest.raises(OperatorError, match=r"variant 0 cannot be made \(tool-rename, own\): .*get_nothing"):
        own(augmenter, mini, act)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda d: d.changes.texts.update({"skills/item/description": "a text"}), "own wrote a change that does not fit: Expected `array`"),
        (lambda d: d.changes.texts.update({"skills/item/description": [object()]}), "own wrote a change that does not fit"),
        (lambda d: d.changes.limits.update({"max_rounds": "5"}), "own wrote a change that does not fit"),
        (lambda d: setattr(d.changes, "skills", None), "own wrote a change that does not fit"),
        (lambda d: d.state.skills[0].description.append("!"), "own altered the parent"),
        (lambda d: d.changes.texts.update({"nonsense": ["a text"]}), "variant 0 cannot be made"),
        (lambda d: d.changes.texts.update({"skills/item/rules": ["a text"]}), "variant 0 cannot be made"),
        (lambda d: d.changes.skill_order.append("item"), "variant 0 cannot be made"),
        (lambda d: d.changes.parameter_order.update({"get_product": ["a"]}), "variant 0 cannot be made"),
        (lambda d: d.changes.hooks.update({"nothing": HookChange()}), "variant 0 cannot be made"),
        (lambda d: d.changes.added_skills.append(d.state.skills[0]), "variant 0 cannot be made"),
    ],
)  # fmt: skip
def test_a_change_that_no_variant_can_have_is_refused(
    mini: Bundle, augmenter: Make, act: Callable[[Draft], None], expected: str
):
    copy = msgspec.convert(msgspec.to_builtins(mini), Bundle)
    with pytest.raises(OperatorError, match=expected):
        own(augmenter, copy, act)


def test_one_that_draws_from_elsewhere_is_named(mini: Bundle, augmenter: Make):
    drawn = iter(range(10**6))

    def act(draft: Draft) -> None:
        draft.changes.framing = Framing(wrap=f"tag-{next(drawn)}")

    with pytest.raises(OperatorError, match="law f: variant 0 came out different when it was made again, by the operator own") as caught:  # fmt: skip
        own(augmenter, mini, act)
    assert caught.value.hint.startswith("draw from `stream` alone")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("hooks", "own failed: TypeError: `targets` gives the text 'hooks', not a list of texts"),
        ([["a"]], "own failed: TypeError: `targets` gives something else than texts"),
        (None, "own failed: TypeError"),
        (map(str, itertools.count()), "own failed: ValueError: `targets` gives more than 100000 targets"),
    ],
)
def test_targets_are_a_list_of_texts_that_ends(mini: Bundle, augmenter: Make, found: Any, expected: str):
    operators = {**shipped_operators(), "own": Own(lambda draft: None, found)}
    with pytest.raises(OperatorError, match=expected):
        augmenter(mini, {"own": Operator()}, operators=operators).variant(seed=1, number=0)


def test_a_dict_in_place_of_a_struct_means_the_same(mini: Bundle, augmenter: Make):
    hook = next(hook.id for hook in mini.state.hooks if hook.otherwise and hook.otherwise.max_retries)
    variant = own(augmenter, mini, lambda d: d.changes.hooks.update({hook: {"max_retries": 3}}))  # pyrefly: ignore
    assert variant.variation.changes.hooks[hook] == HookChange(max_retries=3)


@pytest.mark.parametrize(
    ("act", "place", "reason"),
    [
        (lambda c: c.code.update({"own_code": "def ("}), "code/own_code", "is not Python"),
        (lambda c: c.added_hooks.append(Hook(id="x", event="stop", check={"not": {"python": "own_cod:f"}}, otherwise=Action(action="warn"))), "hooks/x", "runs own_cod:f, and the variant holds no such code"),
        (lambda c: c.texts.update({"skills/item/rules/lookup": ["x" * 10**7]}), "skills/item/rules/lookup", "length: "),
    ],
)  # fmt: skip
def test_what_could_not_run_is_refused(mini: Bundle, augmenter: Make, act: Callable[[Any], None], place: str, reason: str):  # fmt: skip
    with pytest.raises(LawBroken) as caught:
        own(augmenter, mini, lambda draft: act(draft.changes))
    assert caught.value.place == place
    assert reason in caught.value.reason
