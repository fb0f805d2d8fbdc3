"""Slots against their laws: what is held, who may be displaced, and that nothing unread is looked at."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.decode.kv import shared_length
from harnessctl.decode.passes import Feed, Pass, SlotLayer
from harnessctl.decode.slots import BLOCK, FIRST_ROOM, Slots

SEQUENCE = st.lists(st.integers(0, 1), min_size=1, max_size=10)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SEQUENCE, st.integers(0, 3)), max_size=25))
def test_slots_against_their_laws(steps: list[tuple[list[int], int]]) -> None:
    slots, taken = Slots(3, 1), {}
    for ids, action in steps:
        if len(taken) == 3 or (taken and action == 0):
            slots.park(taken.popitem()[0])
        before = [list(held) for held in slots.ids]
        best = max(min(shared_length(held, ids), len(ids) - 1) for held in before)
        assert slots.shared(ids) == best
        slot = slots.take(ids)
        assert slot not in taken
        assert slots.ids[slot] == ids[:best]
        for other in taken:
            assert slots.ids[other] == before[other]
        slots.ids[slot] = list(ids)
        taken[slot] = ids


def test_the_least_recently_used_goes_first_and_what_is_shared_last() -> None:
    slots = Slots(2, 1)
    for ids in ([1, 2, 3], [4, 5, 6]):
        slots.ids[slot := slots.take(ids)] = list(ids)
        slots.park(slot)
    slot = slots.take([1, 2, 9])  # shares with the one that is older, and so displaces the other
    assert slots.ids == [[1, 2, 3], [1, 2]]
    assert slot == 1


def test_a_lone_slot_is_cut_back() -> None:
    slots = Slots(1, 1)
    slots.ids[slots.take([1, 2, 3])] = [1, 2, 3]
    slots.park(0)
    assert slots.take([1, 2, 9]) == 0
    assert slots.ids == [[1, 2]]


def read(slots: Slots, layer: SlotLayer, feeds: list[Feed]) -> Pass:
    """Write states that say their slot and position."""
    slots.grow(BLOCK * (1 + max(len(slots.ids[f.slot]) + len(f.ids) for f in feeds) // BLOCK))
    plan = layer.plan = Pass(slots, feeds, torch.device("cpu"))
    states = (plan.rows * 10_000 + plan.positions).float()[None, None, :, None].expand(1, 2, -1, 4)
    layer.update(states, states)
    for feed in feeds:
        slots.ids[feed.slot] += feed.ids
    return plan


def test_what_a_pass_looks_at_is_written_or_zero() -> None:
    """Memory comes as it comes: here full of NaN."""
    slots = Slots(3, 1)
    layer = SlotLayer(slots, slots.layers[0])
    kept = torch.Tensor.new_empty
    torch.Tensor.new_empty = lambda self, size, **more: kept(self, size, **more).fill_(torch.nan)  # type: ignore[assignment]
    try:
        for slot, length in enumerate((5, 70, FIRST_ROOM - 3)):
            read(slots, layer, [Feed(slot, [0] * length, 0)])
        for _ in range(6):  # grows on the way
            plan = read(slots, layer, [Feed(slot, [0], 1) for slot in range(3)])
            assert len(plan.parts) == 1
            keys = slots.layers[0].keys
            assert keys is not None
            assert not keys[:, :, : plan.parts[0].total].isnan().any()
    finally:
        torch.Tensor.new_empty = kept  # type: ignore[assignment]
    assert slots.room == 2 * FIRST_ROOM
    for slot, ids in enumerate(slots.ids):
        assert torch.equal(keys[slot, 0, : len(ids), 0], slot * 10_000 + torch.arange(len(ids)).float())


def test_slots_side_by_side_with_as_many_tokens_are_one_part() -> None:
    slots = Slots(6, 1)
    feeds = [Feed(0, [1], 1), Feed(1, [1], 1), Feed(2, [1, 2], 1), Feed(4, [1, 2], 1), Feed(5, [1, 2], 1)]
    plan = Pass(slots, feeds, torch.device("cpu"))
    assert [(part.first, len(part.lengths), part.tokens) for part in plan.parts] == [(0, 2, 1), (2, 1, 2), (4, 2, 2)]
    assert plan.kept.tolist() == [0, 1, 3, 5, 7]


def test_a_mask_shows_each_token_its_own_past() -> None:
    slots = Slots(2, 1)
    slots.ids = [[0] * 3, [0] * 1]
    (part,) = Pass(slots, [Feed(0, [1, 2], 1), Feed(1, [1, 2], 1)], torch.device("cpu")).parts
    mask = part.mask(2, torch.zeros(1))
    assert mask is not None and mask.shape == (2, 1, 4, 5)
    assert (mask[0, 0] == 0).tolist() == [[True] * 4 + [False], [True] * 5] * 2
    assert (mask[1, 0] == 0).tolist() == [[True] * 2 + [False] * 3, [True] * 3 + [False] * 2] * 2
