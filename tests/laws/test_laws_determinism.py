"""Law f: the same seed and the same cache give the same bytes, in whatever order, process or number of workers."""

from __future__ import annotations

import hashlib
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws_envelopes import augmenter, every_operator, variants

from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.augment.variants import Augmenter, Variant
from harnessctl.bundle import Bundle, read_bundle
from harnessctl.bundle.files import encode_bundle, write_bundle


def line(variant: Variant) -> bytes:
    """The record as it is written, and the digest of the variant's bytes."""
    encoded = msgspec.json.encode(variant.variation)
    return encoded + hashlib.sha256(encode_bundle(variant.bundle)).hexdigest().encode()


def lines_of(path: str, numbers: list[int]) -> dict[int, bytes]:
    """What a worker makes that was given only the bundle's file."""
    made = Augmenter(read_bundle(Path(path)), every_operator(), rewriter=RulesRewriter())
    return {number: line(made.variant(seed=7, number=number)) for number in numbers}


@pytest.fixture(scope="module")
def expected(bazaar: Bundle) -> dict[int, bytes]:
    return {number: line(variant) for number, variant in enumerate(variants(bazaar, 12))}


def test_the_order_of_making_does_not_matter(bazaar: Bundle, expected: dict[int, bytes]):
    numbers = list(expected)
    random.Random(3).shuffle(numbers)
    made = augmenter(bazaar)
    assert {number: line(made.variant(seed=7, number=number)) for number in numbers} == expected


def test_a_variant_does_not_depend_on_others(bazaar: Bundle, expected: dict[int, bytes]):
    for number in (0, 5, 11):
        assert line(augmenter(bazaar).variant(seed=7, number=number)) == expected[number]


def test_other_seeds_give_other_variants(bazaar: Bundle, expected: dict[int, bytes]):
    assert {line(variant) for variant in variants(bazaar, 12, seed=8)}.isdisjoint(expected.values())


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_same(workers: int, bazaar: Bundle, expected: dict[int, bytes], tmp_path: Path):
    path = str(write_bundle(bazaar, tmp_path))
    shares = [list(expected)[worker::workers] for worker in range(workers)]
    context = multiprocessing.get_context("spawn")  # a hash seed of its own, and nothing worked out before
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        found = [pool.submit(lines_of, path, share) for share in shares]
        assert {number: made for future in found for number, made in future.result().items()} == expected


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**63 - 1), number=st.integers(0, 10**9))
def test_any_seed_and_number(bazaar: Bundle, seed: int, number: int):
    first, second = augmenter(bazaar), augmenter(bazaar)
    second.variant(seed=seed, number=number + 1)
    assert line(first.variant(seed=seed, number=number)) == line(second.variant(seed=seed, number=number))
