"""Relabelling: what was alike stays alike, what differed differs, and only the answers' words change."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.train.base.relabelling import Relabelling
from harnessctl.train.sft.rows import Tokens

WORDS = {
    f"{first}{second}": 10 + 10 * at + other
    for at, first in enumerate("bcdfg")
    for other, second in enumerate("aeiouklmnp")
}
VOCABULARY = {"-": 0, "7": 1, "Ġ": 2, "x": 3, "ĠĠ": 4, "é9": 5, **WORDS}


def tokens(ids, mask):
    return Tokens(torch.tensor(ids, dtype=torch.int32), torch.tensor(mask, dtype=torch.int32))


def relabelled(task, given, seed=0, share=1.0):
    return Relabelling(VOCABULARY, share=share).of(task, given, torch.Generator().manual_seed(seed))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(VOCABULARY.values())), st.booleans()), min_size=1, max_size=30),
    st.integers(0, 99),
)
def test_the_answers_words_are_others_wherever_they_stand(pairs, seed):
    ids, mask = [pair[0] for pair in pairs], [int(pair[1]) for pair in pairs]
    found = relabelled("copy", tokens(ids, mask), seed)
    assert found.mask.tolist() == mask and found.ids.dtype == torch.int32
    said = {number for number, is_said in pairs if is_said} & set(WORDS.values())
    new = dict(zip(ids, found.ids.tolist(), strict=True))
    assert found.ids.tolist() == [new[number] for number in ids]
    assert {number for number in new if new[number] != number} == said
    assert len(set(new.values())) == len(new) and not {new[number] for number in said} & set(ids)


def test_what_an_answer_says_of_its_own_is_left():
    given = tokens([10, 11, 12], [0, 1, 1])
    assert relabelled("format", given) is given
    assert relabelled("copy", given, share=0.0) is given


def test_a_share_is_relabelled():
    given = tokens([10, 11, 12], [0, 1, 1])
    assert 60 < sum(relabelled("lookup", given, seed, share=0.5) is given for seed in range(200)) < 140
