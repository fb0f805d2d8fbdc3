"""Vocabulary: a byte-pair tokenizer for a small model, made of the texts of its domain.

What always holds: a word is the same tokens wherever it stands, at a beginning, behind a space or in quotation marks (a
space is a token of its own), so that a model that copies a name need not know that two spellings are one; each digit is a
token; any text is encoded, down to single bytes; added tokens are the source's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from harnessctl.errors import CheckpointError

#: Bytes, of which every vocabulary has all.
LEAST_SIZE = 256


def make_vocabulary(source: Mapping[str, Any], texts: Iterable[str], *, size: int) -> dict[str, Any]:
    """A tokenizer's document (tokenizer.json) with at most `size` tokens, whose added tokens are those of `source`, another
    one, and have the first ids. Pairs that occur once in `texts` are not merged.

    CheckpointError where `size` has no room for bytes and added tokens.
    """
    added = sorted(source.get("added_tokens") or [], key=lambda token: token["id"])
    if size < LEAST_SIZE + len(added):
        raise CheckpointError(
            f"make.vocabulary.size: {size} is too small", hint=f"bytes and added tokens are {LEAST_SIZE + len(added)}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split(Regex(" +"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[AddedToken(token["content"]) for token in added],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    document: dict[str, Any] = orjson.loads(tokenizer.to_str())
    document["added_tokens"] = [{**token, "id": number} for number, token in enumerate(added)]
    return document


def as_tokenizer(document: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a document."""
    return Tokenizer.from_str(orjson.dumps(document).decode())
