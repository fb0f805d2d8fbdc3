"""A made vocabulary has words that are the same tokens wherever they stand, and encodes any text."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from harnessctl.data.general import draw
from harnessctl.errors import CheckpointError
from harnessctl.train.base.vocabulary import as_tokenizer, make_vocabulary
from tests.train_base.conftest import SPECIAL

TEXTS = [message["content"] or "" for number in range(200) for message in draw(9, number).messages]


def document(tokenizer: Tokenizer) -> dict:
    return orjson.loads(tokenizer.to_str())


@pytest.fixture(scope="module")
def made(tokenizer):
    return as_tokenizer(make_vocabulary(document(tokenizer), TEXTS, size=900))


def tokens(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize("word", ["coach", "jelly_42", "fenorthu-thoothe", "防水"])
def test_a_word_is_the_same_tokens_wherever_it_stands(made, word):
    alone = tokens(made, word)
    for text in (f" {word}", f"=> {word}\n", f'{{"name":"{word}"}}', f"say {word} now", f"<|im_end|>{word}<|im_end|>"):
        found = tokens(made, text)
        assert any(found[at : at + len(alone)] == alone for at in range(len(found)))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_comes_back(made, text):
    ids = made.encode(text, add_special_tokens=False).ids
    assert made.decode(ids, skip_special_tokens=False) == text


def test_each_digit_is_a_token(made):
    assert tokens(made, "1024") == ["1", "0", "2", "4"]


def test_added_tokens_are_the_sources_and_come_first(made):
    assert [made.id_to_token(number) for number in range(len(SPECIAL))] == SPECIAL
    assert tokens(made, "a<|im_end|>b") == ["a", "<|im_end|>", "b"]
    assert made.decode(made.encode("a<|im_end|>b").ids) == "ab"


def test_it_is_a_function_of_the_texts(tokenizer):
    first, again = (make_vocabulary(document(tokenizer), iter(TEXTS), size=600) for _ in range(2))
    assert first == again != make_vocabulary(document(tokenizer), TEXTS[:50], size=600)
    assert as_tokenizer(first).get_vocab_size(with_added_tokens=True) == 600


def test_a_size_without_room_for_bytes_is_refused(tokenizer):
    with pytest.raises(CheckpointError, match=r"make\.vocabulary\.size: 258 is too small"):
        make_vocabulary(document(tokenizer), TEXTS, size=258)
