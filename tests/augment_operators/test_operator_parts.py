"""What operators share: values kept for a parent, languages, modules that are embedded, limits of a draft."""

from __future__ import annotations

import copy

import pytest
from operator_trial import draft_of, state_of

from harnessctl.augment.effective import effective
from harnessctl.augment.embed import embed, fresh_hook_id
from harnessctl.augment.languages import languages
from harnessctl.augment.once import KEPT, once
from harnessctl.bundle import HarnessState
from harnessctl.bundle.state import Block, Hook, Limit
from harnessctl.bundle.variation import Changes


def test_a_value_is_made_once_for_each_state() -> None:
    made: list[HarnessState] = []

    @once
    def size(state: HarnessState) -> int:
        made.append(state)
        return len(state.tools)

    one = state_of()
    twin = copy.deepcopy(one)
    assert [size(one), size(twin), size(one), size(twin)] == [1, 1, 1, 1]
    assert made == [one, twin]
    assert made[0] is one


def test_old_states_are_let_go() -> None:
    made: list[int] = []

    @once
    def number(state: HarnessState) -> int:
        made.append(id(state))
        return id(state)

    states = [state_of() for _ in range(KEPT + 1)]
    assert [number(state) for state in states] == [id(state) for state in states]
    assert number(states[-1]) == id(states[-1])
    assert len(made) == KEPT + 1
    number(states[0])
    assert len(made) == KEPT + 2, "the one used longest ago was made again"


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("", ("en",)),
        ("You answer what viewers ask in the live room.", ("en",)),
        ("你是直播间的主播，请用一句话回答观众提出的问题，不要夸大。", ("zh",)),
        ("You host the room, answer what viewers ask and never say 最好 or 绝对.", ("en",)),
        ("You host the room. 你是直播间的主播，请回答观众的问题。", ("zh", "en")),
        ("You host the live room and answer each viewer who asks for a fact. 你是主播，请回答问题。", ("en", "zh")),
    ],
)
def test_languages_are_those_that_sentences_are_written_in(template: str, found: tuple[str, ...]) -> None:
    assert languages(state_of(blocks=[Block(id="b", template=template)], loads="", answers="")) == found


def test_a_module_is_numbered_where_its_name_is_anothers() -> None:
    draft = draft_of(state_of(code={"m": "a = 1", "m_2": "b = 1"}))
    assert embed(draft, "m", "a = 1") == "m"
    assert draft.changes.code == {}
    assert embed(draft, "m", "c = 1") == "m_3"
    assert embed(draft, "m", "c = 1") == "m_3"
    assert embed(draft, "m", "d = 1") == "m_4"
    assert draft.changes.code == {"m_3": "c = 1", "m_4": "d = 1"}


def test_a_hook_is_numbered_where_its_id_is_anothers() -> None:
    draft = draft_of(state_of(hooks=[Hook(id="late", event="end"), Hook(id="late-2", event="end")]))
    draft.changes.added_hooks.append(Hook(id="late-3", event="end"))
    assert fresh_hook_id(draft, "late") == "late-4"
    assert fresh_hook_id(draft, "soon") == "soon"


def test_a_limit_is_what_the_draft_made_of_it() -> None:
    state = state_of(limits={"chars": Limit(value=80)})
    del state.limits["max_rounds"]
    draft = draft_of(state, changes=Changes(limits={"chars": 70}))
    assert effective(draft, "chars") == 70
    assert effective(draft_of(state), "chars") == 80
    assert effective(draft, "max_rounds") == 4, "the runtime's default"
    assert effective(draft, "other") is None
