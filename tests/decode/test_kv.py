"""Key-value caches: equal to the stock one, and shared without harm."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from harnessctl.decode.kv import ROOM, Context, ContextStore, GrowingLayer, shared_length
from harnessctl.decode.weights import Weights


def feed(weights: Weights, context: Context, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        out = weights.model(input_ids=torch.tensor([ids]), cache=context.cache, use_cache=True)
    context.ids += ids
    return out.logits[0]


def test_the_growing_layer_gives_what_the_stock_cache_gives(weights: Weights) -> None:
    ids = [3 + index % 200 for index in range(2 * ROOM + 40)]
    context, stock = Context.empty(weights.model.config), DynamicCache(config=weights.model.config)
    for start, end in ((0, 5), (5, 6), (6, ROOM + 20), (ROOM + 20, len(ids))):
        ours = feed(weights, context, ids[start:end])
        with torch.inference_mode():
            theirs = weights.model(input_ids=torch.tensor([ids[start:end]]), cache=stock, use_cache=True).logits[0]
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_fork_is_a_copy(weights: Weights) -> None:
    whole = Context.empty(weights.model.config)
    feed(weights, whole, [5, 6, 7, 8])
    fork = whole.fork(2)
    assert fork.ids == [5, 6]
    feed(weights, fork, [90, 91])
    fresh = Context.empty(weights.model.config)
    feed(weights, fresh, [5, 6, 7, 8])
    assert torch.allclose(feed(weights, whole, [9]), feed(weights, fresh, [9]), atol=1e-6)
    assert whole.ids == [5, 6, 7, 8, 9]


def test_a_cut_context_goes_on_as_if_it_had_never_read_the_rest(weights: Weights) -> None:
    context, fresh = Context.empty(weights.model.config), Context.empty(weights.model.config)
    feed(weights, context, [5, 6, 7, 8])
    context.cut(2)
    assert context.ids == [5, 6]
    feed(weights, fresh, [5, 6])
    assert torch.allclose(feed(weights, context, [9]), feed(weights, fresh, [9]), atol=1e-6)


def context_of(weights: Weights, ids: list[int]) -> Context:
    context = Context.empty(weights.model.config)
    feed(weights, context, ids)
    return context


def test_a_context_that_is_a_beginning_is_handed_over(weights: Weights) -> None:
    store = ContextStore(weights.model.config, 1 << 30)
    kept = context_of(weights, [5, 6, 7])
    store.put(kept)
    assert store.take([5, 6, 7, 8]) is kept
    assert store.take([5, 6, 7, 8]).ids == []


def test_of_a_context_that_went_another_way_the_shared_part_is_copied(weights: Weights) -> None:
    store = ContextStore(weights.model.config, 1 << 30)
    kept = context_of(weights, [5, 6, 7, 8])
    store.put(kept)
    taken = store.take([5, 6, 9, 9])
    assert taken.ids == [5, 6]
    assert kept.ids == [5, 6, 7, 8]


def test_at_least_one_token_is_left_to_read(weights: Weights) -> None:
    store = ContextStore(weights.model.config, 1 << 30)
    store.put(context_of(weights, [5, 6, 7]))
    assert store.take([5, 6, 7]).ids == [5, 6]


def test_the_longest_beginning_wins(weights: Weights) -> None:
    store = ContextStore(weights.model.config, 1 << 30)
    for ids in ([5], [5, 6, 7], [5, 6]):
        store.put(context_of(weights, ids))
    assert store.take([5, 6, 7, 8]).ids == [5, 6, 7]


def test_the_oldest_context_makes_room(weights: Weights) -> None:
    first = context_of(weights, [5, 6])
    store = ContextStore(weights.model.config, 2 * first.bytes)
    for ids in ([5, 6], [7, 8], [9, 10]):
        store.put(context_of(weights, ids))
    assert store.take([5, 6, 1]).ids == []
    assert store.take([7, 8, 1]).ids == [7, 8]
    assert store.take([9, 10, 1]).ids == [9, 10]


def test_one_context_is_kept_however_large(weights: Weights) -> None:
    store = ContextStore(weights.model.config, 1)
    store.put(context_of(weights, [5, 6]))
    assert store.take([5, 6, 7]).ids == [5, 6]


def test_bytes_count_keys_and_values_and_their_room(weights: Weights) -> None:
    # 2 layers, keys and values, 2 heads of 8 numbers, 4 bytes each.
    assert context_of(weights, [5, 6, 7]).bytes == 2 * 2 * (3 + ROOM) * 2 * 8 * 4
    assert Context.empty(weights.model.config).bytes == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 1), max_size=12), st.lists(st.integers(0, 1), max_size=12))
def test_shared_length_against_a_loop(left: list[int], right: list[int]) -> None:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    assert shared_length(left, right) == count


def test_a_layer_starts_empty() -> None:
    layer = GrowingLayer()
    assert layer.get_seq_length() == 0
    assert layer.fork(0).get_seq_length() == 0


@pytest.mark.parametrize("length", [1, ROOM, ROOM + 1])
def test_a_layer_holds_what_it_was_given(length: int) -> None:
    layer = GrowingLayer()
    keys, values = torch.randn(1, 2, length, 4), torch.randn(1, 2, length, 4)
    layer.update(keys[..., :1, :], values[..., :1, :])
    if length > 1:
        layer.update(keys[..., 1:, :], values[..., 1:, :])
    assert layer.keys is not None and layer.values is not None
    assert torch.equal(layer.keys, keys)
    assert torch.equal(layer.values, values)
