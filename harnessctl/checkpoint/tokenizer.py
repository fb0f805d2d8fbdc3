"""Tokenizer: whether two folders map text to the same ids and back.

Compared is what decides ids: vocabulary, merges, added tokens with their flags, normaliser, pre-tokeniser and decoder.
Not compared are the post-processor, truncation and padding, which nothing here uses: ids are made without special tokens
put around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from harnessctl.errors import CheckpointError
from harnessctl.storage import digest, read_bytes

_PARTS = ("normalizer", "pre_tokenizer", "decoder")
_FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")
_MOST = 5


def check_tokenizer(folder: Path, other: Path) -> None:
    """CheckpointError unless the tokenizers of both folders are the same mapping; it names the first differences."""
    mine, theirs = _mapping(folder), _mapping(other)
    found = list(_differences(mine, theirs))
    if found:
        raise CheckpointError(
            f"the tokenizers of {folder} and {other} are not the same: {'; '.join(found)}",
            hint="logits can be compared, and ids passed on, only between models of one tokenizer",
        )


def tokenizer_digest(folder: Path) -> str:
    """SHA-256 of the mapping: equal for folders that `check_tokenizer` lets pass."""
    return digest(_mapping(folder))


def _mapping(folder: Path) -> dict[str, Any]:
    """The tokenizer as plain JSON in one form, whatever version of the library wrote it."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no tokenizer.json", hint="save the fast tokenizer beside the model")
    try:
        document: dict[str, Any] = orjson.loads(read_bytes(path))
        model = dict(document["model"])
        # BPE and WordPiece map pieces to ids, Unigram lists pieces with their scores.
        vocabulary = model.pop("vocab")
        if isinstance(vocabulary, list):
            model["scores"] = [score for _, score in vocabulary]
            vocabulary = {piece: number for number, (piece, _) in enumerate(vocabulary)}
        merges = model.pop("merges", [])
        added = {token["content"]: token for token in document.get("added_tokens") or []}
        return {
            "ids": vocabulary | {content: token["id"] for content, token in added.items()},
            "merges": [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges],
            "added": {content: [bool(token.get(flag)) for flag in _FLAGS] for content, token in added.items()},
            "model": _without_nulls(model),
            **{part: _without_nulls(document.get(part)) for part in _PARTS},
        }
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: not a tokenizer: {error!r}") from error


def _without_nulls(value: Any) -> Any:
    """A key that is null and one that is not there mean the same; newer versions of the library write more of them."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _differences(mine: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    """Sentences, of each kind the first few."""
    ids, other = mine["ids"], theirs["ids"]
    apart = [piece for piece in sorted(ids.keys() | other.keys()) if ids.get(piece) != other.get(piece)]
    # By id, so that what is said first is where the two part.
    apart.sort(key=lambda piece: min(ids.get(piece, 1 << 62), other.get(piece, 1 << 62)))
    for piece in apart[:_MOST]:
        yield f"{piece!r} is {_number(ids.get(piece))} in the one and {_number(other.get(piece))} in the other"
    if len(apart) > _MOST:
        yield f"{len(apart) - _MOST} more of {len(ids)} and {len(other)} pieces differ"
    for number, (left, right) in enumerate(zip(mine["merges"], theirs["merges"], strict=False)):
        if left != right:
            yield f"merge {number} is {left} in the one and {right} in the other"
            break
    if len(mine["merges"]) != len(theirs["merges"]):
        yield f"{len(mine['merges'])} merges in the one and {len(theirs['merges'])} in the other"
    for content in sorted(mine["added"].keys() & theirs["added"].keys()):
        flags = [
            flag for flag, a, b in zip(_FLAGS, mine["added"][content], theirs["added"][content], strict=True) if a != b
        ]
        if flags:
            yield f"the added token {content!r} differs in {', '.join(flags)}"
    for content in sorted(mine["added"].keys() ^ theirs["added"].keys()):
        yield f"{content!r} is an added token in one of them only"
    for part in ("model", *_PARTS):
        if mine[part] != theirs[part]:
            yield f"their parts `{part}` differ"


def _number(piece: int | None) -> str:
    return "not there" if piece is None else str(piece)
