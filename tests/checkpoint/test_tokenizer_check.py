"""Preflight: two tokenizers are the same mapping, or the first differences are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnessctl.checkpoint.policy import check_tokenizer
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.errors import CheckpointError
from tests.checkpoint.conftest import tokenizer_document


def folder(root: Path, document: Any) -> Path:
    root.mkdir()
    (root / "tokenizer.json").write_text(json.dumps(document))
    return root


def model(**changes: Any) -> dict[str, Any]:
    return {"model": tokenizer_document()["model"] | changes}


def added(**changes: Any) -> dict[str, Any]:
    return {"added_tokens": [tokenizer_document()["added_tokens"][0] | changes]}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"truncation": {"max_length": 3}, "padding": {"pad_id": 0}, "post_processor": {"type": "ByteLevel"}},
        model(merges=["a b", "ab c"]),
        model(dropout=None),
        {"version": "2.0"},
    ],
)
def test_the_same_mapping_in_another_dress(tmp_path: Path, changes: dict[str, Any]):
    one, other = folder(tmp_path / "a", tokenizer_document()), folder(tmp_path / "b", tokenizer_document(**changes))
    check_tokenizer(one, other)
    assert tokenizer_digest(one) == tokenizer_digest(other)


VOCABULARY = tokenizer_document()["model"]["vocab"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            model(vocab=VOCABULARY | {"b": 2, "c": 1}),
            "'b' is 1 in the one and 2 in the other; 'c' is 2 in the one and 1",
        ),
        (model(vocab=VOCABULARY | {"d": 9}), "'d' is not there in the one and 9 in the other"),
        (model(merges=[["a", "b"], ["b", "c"]]), r"merge 1 is \['ab', 'c'\] in the one and \['b', 'c'\] in the other"),
        (model(merges=[["a", "b"]]), "2 merges in the one and 1 in the other"),
        (model(byte_fallback=True), "their parts `model` differ"),
        (added(special=False, lstrip=True), "added token '<|im_end|>' differs in special, lstrip"),
        (added(id=7), "is 5 in the one and 7 in the other"),
        ({"added_tokens": []}, "is an added token in one of them only"),
        ({"normalizer": {"type": "NFC"}}, "their parts `normalizer` differ"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "their parts `pre_tokenizer` differ"),
    ],
)
def test_the_first_differences_are_named(tmp_path: Path, changes: dict[str, Any], says: str):
    one, other = folder(tmp_path / "a", tokenizer_document()), folder(tmp_path / "b", tokenizer_document(**changes))
    with pytest.raises(CheckpointError, match=says.replace("|", r"\|")):
        check_tokenizer(one, other)
    assert tokenizer_digest(one) != tokenizer_digest(other)


def test_many_differences_are_counted(tmp_path: Path):
    one = folder(tmp_path / "a", tokenizer_document())
    other = folder(tmp_path / "b", tokenizer_document(**model(vocab={str(n): n for n in range(100)})))
    with pytest.raises(CheckpointError, match="100 more of 6 and 101 pieces differ"):
        check_tokenizer(one, other)


def test_unigram_scores_count(tmp_path: Path):
    def unigram(score: float) -> dict[str, Any]:
        return tokenizer_document(model={"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0], ["b", score]]})

    one, other = folder(tmp_path / "a", unigram(-1.5)), folder(tmp_path / "b", unigram(-1.5))
    check_tokenizer(one, other)
    with pytest.raises(CheckpointError, match="`model`"):
        check_tokenizer(one, folder(tmp_path / "c", unigram(-2.5)))


@pytest.mark.parametrize("content", ["{", "[]", '{"model": {"vocab": 3}}'])
def test_what_is_no_tokenizer(tmp_path: Path, content: str):
    one = folder(tmp_path / "a", tokenizer_document())
    (tmp_path / "b").mkdir()
    with pytest.raises(CheckpointError, match=r"holds no tokenizer\.json"):
        check_tokenizer(one, tmp_path / "b")
    (tmp_path / "b" / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match="not a tokenizer"):
        check_tokenizer(one, tmp_path / "b")
