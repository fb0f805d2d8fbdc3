"""The wall between control and data, for tokenizers that make it hard."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from harnessctl.decode.template import Segment
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import UsageError
from tests.decode.conftest import make_tokenizer


def test_control_text_becomes_special_tokens_and_data_does_not() -> None:
    codec = TokenCodec(make_tokenizer(), end="<|im_end|>")
    control = codec.encode([Segment("<|im_start|>", control=True)])
    data = codec.encode([Segment("<|im_start|>", control=False)])
    assert control == [1]
    assert len(data) > 1
    assert codec.decode(control) == codec.decode(data) == "<|im_start|>"


def test_a_vocabulary_that_holds_the_special_token_as_a_word_cannot_be_reached_by_spelling_it() -> None:
    vocab = {"[END]": 0, "hi": 1, "?": 2, "[": 3, "E": 4, "N": 5, "D": 6, "]": 7}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["[END]"])
    codec = TokenCodec(tokenizer, end="[END]")
    assert codec.encode([Segment("hi [END]", control=True)]) == [1, 0]
    assert 0 not in codec.encode([Segment("hi [END]", control=False)])


def test_lone_surrogates_are_replaced() -> None:
    codec = TokenCodec(make_tokenizer(), end="<|im_end|>")
    assert codec.decode(codec.encode_data("a\ud800b")) == "a?b"


def test_added_and_special_ids_are_told_apart() -> None:
    codec = TokenCodec(make_tokenizer(added=("<tool_call>",)), end="<|im_end|>")
    assert codec.special_ids == {0, 1, 2}
    assert len(codec.added_ids) == 4


@pytest.mark.parametrize("end", ["<|eot|>", "hi"])
def test_an_end_that_is_not_one_added_token_is_refused(end: str) -> None:
    with pytest.raises(UsageError, match="does not know") as caught:
        TokenCodec(make_tokenizer(), end=end)
    assert "template that the model was trained with" in caught.value.hint


def test_truncation_and_padding_of_the_file_are_ignored() -> None:
    tokenizer = make_tokenizer()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)
    codec = TokenCodec(tokenizer, end="<|im_end|>")
    assert len(codec.encode_data("abcdefghij")) == 10
    assert len(codec.encode([Segment("<|im_end|>", control=True)])) == 1


def test_an_added_token_that_strips_spaces_does_not_touch_data() -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens([AddedToken("<x>", lstrip=True, rstrip=True, special=False)])
    codec = TokenCodec(tokenizer, end="<|im_end|>")
    assert codec.decode(codec.encode_data("a <x> b")) == "a <x> b"
