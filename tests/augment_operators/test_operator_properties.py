"""Whatever the harness, what an operator makes of it is a harness, and keeps what it says it keeps."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_trial import apply, draft_of, names, operator, refs, rule, seen, state_of, tool

from harnessctl.augment.order import edges_left, reordered
from harnessctl.augment.stream import Stream
from harnessctl.bundle import HarnessState
from harnessctl.bundle.state import Action, Block, Hook, Limit, Message, Number, Rule
from harnessctl.bundle.text import Ref, Text
from harnessctl.bundle.variation import Changes, vary
from harnessctl.records.scenario import Needs
from harnessctl.runtime.surface import SurfaceView

TOOLS = ("get", "get_more", "find", "say-so", "put2", "查询_x")
PARAMETERS = ("id", "link_id", "size", "name", "q")
LIMITS = ("reply_max_chars", "max_rounds", "budget")
WORDS = ("Look ", "at the 10 links ", "查 ", "and never `get` ", "{{ not a template }} ", "")


def texts(limits: tuple[str, ...] = LIMITS) -> st.SearchStrategy[Text]:
    parts = st.sampled_from(WORDS) | st.builds(Ref, st.just("tool"), st.sampled_from(TOOLS[:3]))
    parts |= st.builds(Ref, st.just("limit"), st.sampled_from(limits))
    return st.lists(parts, min_size=1, max_size=4)


@st.composite
def rules(draw: st.DrawFn) -> list[Rule]:
    out: list[Rule] = []
    for number in range(draw(st.integers(1, 5))):
        earlier = st.sampled_from([None, *(r.id for r in out)])
        out.append(
            rule(
                f"r{number}",
                draw(texts()),
                protected=draw(st.booleans()),
                verbatim=draw(st.booleans()),
                after=draw(earlier),
                requires=draw(earlier),
            )
        )
    return out


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    out: list[Block] = []
    for number in range(draw(st.integers(1, 6))):
        role: Any = draw(st.sampled_from(["system", "user"]))
        id, after, pin = f"b{number}", draw(st.sampled_from([None, *(b.id for b in out)])), draw(st.booleans())
        if draw(st.booleans()):
            template = draw(
                st.sampled_from(["Help.", "{{ messages[0].text }}", "{% for a in actions %}{{ a }}{% endfor %}"])
            )
            out.append(Block(id=id, role=role, template=template, after=after, pin=pin))
        else:
            out.append(Block(id=id, role=role, heading=["## Law"], items=draw(rules()), after=after, pin=pin))
    return out


@st.composite
def hooks(draw: st.DrawFn) -> list[Hook]:
    out: list[Hook] = []
    for number in range(draw(st.integers(0, 4))):
        event: Any = draw(st.sampled_from(["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end"]))
        kind: Any = draw(st.sampled_from(["retry", "block", "warn", "stop_loop"]))
        role: Any = draw(st.sampled_from([None, "tool", "user", "system"]))
        message = Message(text=draw(texts()), role=role, wrap=draw(st.sampled_from([None, "note"])))
        action = Action(
            action=kind,
            message=message if draw(st.booleans()) else None,
            max_retries=draw(st.sampled_from([None, 1, 2, 9])) if kind == "retry" else None,
        )
        if draw(st.booleans()):
            out.append(Hook(id=f"h{number}", event=event, check={"expr": "true"}, otherwise=action))
        else:
            out.append(Hook(id=f"h{number}", event=event, then=action))
    return out


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Limit]:
    out: dict[str, Limit] = {}
    for name in LIMITS:
        whole = draw(st.booleans())
        values: list[Number] = sorted(draw(st.lists(st.integers(1, 300) if whole else st.floats(0.5, 300), min_size=3, max_size=3)))  # fmt: skip
        out[name] = Limit(value=values[1], range=[values[0], values[2]] if draw(st.booleans()) else None)
    return out


@st.composite
def states(draw: st.DrawFn) -> HarnessState:
    named = list(TOOLS[:3]) + draw(st.lists(st.sampled_from(TOOLS[3:]), unique=True))
    return state_of(
        tools=[tool(name, *draw(st.lists(st.sampled_from(PARAMETERS), unique=True))) for name in named],
        hooks=draw(hooks()),
        blocks=draw(blocks()),
        inputs={"properties": {"actions": {"type": "array", "items": {"properties": {"viewer": {}}}}}},
        limits=draw(limits()),
        require_skill=draw(st.sampled_from(["reply", "none"])),
    )


NEEDS = st.builds(Needs, min_chars=st.integers(0, 300), min_rounds=st.integers(0, 6))


def resolves(ref: Ref, state: HarnessState) -> bool:
    return ref.name in {"tool": {t.name for t in state.tools}, "limit": state.limits}[ref.kind]


def is_kept(parent: HarnessState, variant: HarnessState, changes: Changes, needs: Needs) -> None:
    """What holds for the variants of each operator of this folder."""
    assert all(resolves(ref, variant) for ref in refs(variant))
    SurfaceView(variant)
    seen(variant)
    assert msgspec.convert(msgspec.to_builtins(variant), HarnessState) == variant
    # tools
    added = {t.name for t in changes.added_tools}
    assert {t.name for t in variant.tools} - added == {t.name for t in parent.tools}
    held = {t.name: t for t in variant.tools}
    for old in parent.tools:
        assert (held[old.name].parameters, held[old.name].run, held[old.name].effect) == (
            old.parameters,
            old.run,
            old.effect,
        )
        assert set(held[old.name].docs) == set(old.docs)
    # blocks and items
    before, after = parent.prompt.blocks, variant.prompt.blocks
    assert sorted(b.id for b in before) == sorted(b.id for b in after)
    place = {b.id: index for index, b in enumerate(after)}
    for index, block in enumerate(before):
        assert not block.pin or place[block.id] == index
        assert after[index].role == block.role
        assert block.after is None or place[block.after] < place[block.id]
    for old in before:
        new = after[place[old.id]]
        left = {item.id: index for index, item in enumerate(new.items)}
        gone = {item.id for item in old.items} - set(left)
        assert len(left) >= min(1, len(old.items))
        edges = edges_left(old.items, gone)
        for item in old.items:
            assert not (item.protected and item.id in gone)
            if item.id in left:
                assert item.requires is None or item.requires in left
                assert item.id not in edges or left[edges[item.id]] < left[item.id]
                now = new.items[left[item.id]]
                assert not item.verbatim or now.text == item.text
                assert now.after == edges.get(item.id)
    # limits
    for name, limit in parent.limits.items():
        value = variant.limits[name].value
        assert type(value) is type(limit.value)
        if value != limit.value:
            assert limit.range is not None
            assert limit.range[0] <= value <= limit.range[1]
            floor = {"reply_max_chars": needs.min_chars, "max_rounds": needs.min_rounds}.get(name, 0)
            assert value >= floor
    # hooks
    assert [h.id for h in variant.hooks][: len(parent.hooks)] == [h.id for h in parent.hooks]
    for old_hook, hook in zip(parent.hooks, variant.hooks, strict=False):
        assert (hook.event, hook.check, hook.when, hook.enforces) == (old_hook.event, old_hook.check, old_hook.when, old_hook.enforces)  # fmt: skip
        was, now_ = old_hook.otherwise or old_hook.then, hook.otherwise or hook.then
        assert was is not None
        assert now_ is not None
        assert (was.action, was.message is None) == (now_.action, now_.message is None)
        assert now_.max_retries == was.max_retries or 1 <= (now_.max_retries or 0) <= 10


@settings(max_examples=60, deadline=None)
@given(state=states(), number=st.integers(0, 1000), needs=NEEDS)
def test_each_operator_keeps_what_it_should(state: HarnessState, number: int, needs: Needs) -> None:
    for name in names():
        draft = draft_of(state, number=number, needs=needs)
        done = apply(name, draft)
        variant = vary(state, draft.changes)
        is_kept(state, variant, draft.changes, needs)
        assert (variant == state) is (not done), name
        again = draft_of(state, number=number, needs=needs)
        apply(name, again)
        assert again.changes == draft.changes


@settings(max_examples=60, deadline=None)
@given(state=states(), number=st.integers(0, 1000), needs=NEEDS, on=st.sets(st.sampled_from(names())))
def test_operators_together_keep_what_each_keeps(state: HarnessState, number: int, needs: Needs, on: set[str]) -> None:
    draft = draft_of(state, number=number, needs=needs)
    stages = ("mask", "add", "rename", "reword", "reorder", "behave")
    for name in sorted(on, key=lambda name: (stages.index(operator(name).stage), name)):
        apply(name, draft)
    variant = vary(state, draft.changes)
    is_kept(state, variant, draft.changes, needs)
    for hook, old in zip(variant.hooks, state.hooks, strict=False):
        action, was = hook.otherwise or hook.then, old.otherwise or old.then
        assert action is not None
        assert was is not None
        if action.max_retries != was.max_retries and hook.event != "pre_model":
            rounds = variant.limits["max_rounds"].value
            assert (action.max_retries or 0) + 1 + (state.require_skill == "reply") <= rounds


@settings(max_examples=200, deadline=None)
@given(data=st.data(), size=st.integers(0, 9), number=st.integers(0, 10**6))
def test_an_order_is_a_permutation_that_keeps_edges_places_and_lanes(
    data: st.DataObject, size: int, number: int
) -> None:
    members = [f"m{n}" for n in range(size)]
    after = {
        name: data.draw(st.sampled_from(members[:n]))
        for n, name in enumerate(members)
        if n and data.draw(st.booleans())
    }
    fixed = data.draw(st.sets(st.sampled_from(members))) if members else set()
    lanes = {name: data.draw(st.sampled_from("ab")) for name in members}
    order = reordered(members, Stream(number), after=after, fixed=fixed, lane=lanes.__getitem__)
    assert order == reordered(members, Stream(number), after=after, fixed=fixed, lane=lanes.__getitem__)
    if order is None:
        return
    assert order != members
    assert sorted(order) == members
    assert all(order.index(before) < order.index(name) for name, before in after.items())
    assert all(order[index] == name for index, name in enumerate(members) if name in fixed)
    assert [lanes[name] for name in order] == [lanes[name] for name in members]


def test_an_order_is_found_where_shuffles_hardly_find_one() -> None:
    members = [f"m{n}" for n in range(12)]
    chain = {f"m{n}": f"m{n - 1}" for n in range(1, 11)}
    found = [reordered(members, Stream(n), after=chain) for n in range(30)]
    assert sum(order is not None for order in found) > 20
    assert all(o is None or [m for m in o if m != "m11"] == members[:11] for o in found)


def test_orders_without_edges_come_up_evenly() -> None:
    counts: dict[tuple[str, ...], int] = {}
    for number in range(2500):
        order = reordered("abc", Stream(number))
        assert order is not None
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 5
    # 500 each; chi-square with 4 degrees of freedom stays under 18.5 at the level of 0.001.
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 18.5
