"""A reduced vocabulary reads what it was made for as the whole one does, and everything else in smaller pieces."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from harnessctl.errors import CheckpointError
from harnessctl.train.base.vocabulary import Wanted, prune_vocabulary

KEPT = ["the keys of the list are there", "Call `kite_lane` first.", '{"name":"kite_lane"}', "plumbing leak repair"]


def document(tokenizer):
    return orjson.loads(tokenizer.to_str())


def tokens(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


@pytest.fixture(scope="module")
def pruned(tokenizer):
    return prune_vocabulary(document(tokenizer), Wanted(texts=KEPT, first_merges=20)).tokenizer()


@pytest.mark.parametrize("text", KEPT)
def test_kept_texts_are_read_as_before(tokenizer, pruned, text):
    assert tokens(pruned, text) == tokens(tokenizer, text)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([*KEPT, "key", " list", "repairs the leak", "<|im_end|>", "x9", "中"]), max_size=4).map(
        " ".join
    )
)
def test_a_text_whose_tokens_are_kept_is_read_as_before(tokenizer, pruned, text):
    before = tokens(tokenizer, text)
    kept = pruned.get_vocab()
    if all(token in kept for token in before):
        assert tokens(pruned, text) == before


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_every_text_comes_back(pruned, text):
    assert pruned.decode(pruned.encode(text, add_special_tokens=False).ids, skip_special_tokens=False) == text


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="abc ", max_size=60), st.text(alphabet="abc ", max_size=30), st.randoms())
def test_several_pairs_that_make_one_token(text, other, chance):
    """`abc` may come of ab+c and of a+bc: both ways stay, so that the first that applies is the one that did."""
    pairs = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("c", "a"), ("abc", "abc"), ("ca", "b"), ("c", "ab")]
    chance.shuffle(pairs)
    known, merges = ["a", "b", "c", " "], []
    for left, right in pairs:
        if left in known and right in known:
            merges.append((left, right))
            known += [left + right] if left + right not in known else []
    whole = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(known)}, merges=merges))
    whole.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    reduced = prune_vocabulary(document(whole), Wanted(texts=[text])).tokenizer()
    assert tokens(reduced, text) == tokens(whole, text)
    before = tokens(whole, other)
    if set(before) <= set(reduced.get_vocab()):
        assert tokens(reduced, other) == before


def test_ids_are_dense_rising_and_known_by_their_rows(tokenizer):
    found = prune_vocabulary(document(tokenizer), Wanted(texts=KEPT, first_merges=20))
    reduced, names = found.tokenizer(), {number: token for token, number in tokenizer.get_vocab().items()}
    assert found.rows == sorted(found.rows) and len(found.rows) < tokenizer.get_vocab_size()
    assert {token: found.rows[number] for token, number in reduced.get_vocab().items()} == {
        names[row]: row for row in found.rows
    }


def test_added_tokens_stay_added(tokenizer, pruned):
    assert tokens(pruned, "a<|im_end|>b")[1] == "<|im_end|>"
    assert [t.content for t in pruned.get_added_tokens_decoder().values()] == [
        t.content for t in tokenizer.get_added_tokens_decoder().values()
    ]


def test_common_texts_count(tokenizer):
    token, texts = "Ġre", ["leak repair", "roof repair", "tile repair", "zzz"]
    assert all(token in tokens(tokenizer, text) for text in texts[:3])
    for least, is_kept in ((3, True), (4, False)):
        reduced = prune_vocabulary(document(tokenizer), Wanted(common=texts, least=least)).tokenizer()
        assert (token in reduced.get_vocab()) is is_kept


def test_another_kind_of_tokenizer_is_refused():
    whole = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    with pytest.raises(CheckpointError, match="WordLevel"):
        prune_vocabulary(document(whole), Wanted())
