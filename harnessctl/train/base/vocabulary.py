"""Vocabulary: a byte-pair tokenizer reduced to the tokens that a domain's texts use.

What always holds: a text whose tokens are kept is encoded to the same token strings as before; any other text is still
encoded, to smaller pieces, down to single bytes; added tokens stay what they are. For whatever pair may make a kept
token, its two parts are kept as well: so every merge on the way to a kept token is still there, in the old order, and the
first that applies is the one that applied before.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from tokenizers import Tokenizer

from harnessctl.errors import CheckpointError

_BATCH = 4096
_BYTE = "<0x"


@dataclass(slots=True, frozen=True)
class Vocabulary:
    """A tokenizer's document (tokenizer.json). `rows` has the old id of each new id, rising."""

    document: dict[str, Any]
    rows: list[int]

    @property
    def new_ids(self) -> dict[int, int]:
        """The new id of each old one that is kept."""
        return {old: new for new, old in enumerate(self.rows)}

    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself."""
        return Tokenizer.from_str(orjson.dumps(self.document).decode())


@dataclass(slots=True, frozen=True)
class Wanted:
    """What a vocabulary is made for: the tokens of `texts`, those of `common` that occur at least `least` times there, and
    those that the tokenizer's `first_merges` make."""

    texts: Iterable[str] = ()
    common: Iterable[str] = ()
    least: int = 1
    first_merges: int = 0


def prune_vocabulary(document: Mapping[str, Any], wanted: Wanted) -> Vocabulary:
    """The tokenizer `document` with the tokens that are wanted, all single characters and bytes, and all added tokens.
    CheckpointError for a tokenizer that is not byte-pair encoding."""
    model = document["model"]
    if model.get("type") != "BPE":
        raise CheckpointError(
            f"only a byte-pair tokenizer can be reduced; got {model.get('type')}", hint="leave cut.vocabulary out"
        )
    pairs = [_pair(merge) for merge in model["merges"]]
    ids: dict[str, int] = model["vocab"]
    added: dict[str, int] = {token["content"]: token["id"] for token in document["added_tokens"]}
    kept = {token for token in ids if len(token) == 1 or token.startswith(_BYTE) or token == model.get("unk_token")}
    kept |= {token for token in added if token in ids}
    prefix = model.get("continuing_subword_prefix") or ""
    chosen = [left + right.removeprefix(prefix) for left, right in pairs[: wanted.first_merges]]
    tokens = {number: token for token, number in ids.items()}
    used = {number: count for number, count in _counts(document, wanted.common).items() if count >= wanted.least}
    used |= _counts(document, wanted.texts)
    chosen += [tokens[number] for number in sorted(used) if number in tokens]
    _close(kept, chosen, _makings(pairs, prefix))
    old = {token: number for token, number in ids.items() if token in kept} | added
    rows = sorted(set(old.values()))
    return Vocabulary(_reduced(document, {number: new for new, number in enumerate(rows)}, pairs, kept), rows)


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _makings(pairs: Iterable[tuple[str, str]], prefix: str) -> dict[str, list[tuple[str, str]]]:
    """The pairs that make each token: mostly one."""
    found: dict[str, list[tuple[str, str]]] = {}
    for left, right in pairs:
        found.setdefault(left + right.removeprefix(prefix), []).append((left, right))
    return found


def _counts(document: Mapping[str, Any], texts: Iterable[str]) -> Counter[int]:
    """How often each id occurs in `texts`, each text counted once, read as data (no added tokens) and as control text."""
    bare = {**document, "truncation": None, "padding": None}
    control = Tokenizer.from_str(orjson.dumps(bare).decode())
    data = Tokenizer.from_str(orjson.dumps({**bare, "added_tokens": []}).decode())
    added = [token["content"] for token in document["added_tokens"]]
    found: Counter[int] = Counter()
    for batch in _batches(sorted(set(texts))):
        for read in data.encode_batch_fast(batch, add_special_tokens=False):
            found.update(read.ids)
        literal = [text for text in batch if any(token in text for token in added)]
        for read in control.encode_batch_fast(literal, add_special_tokens=False):
            found.update(read.ids)
    return found


def _batches(texts: list[str]) -> Iterable[list[str]]:
    return (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))


def _close(kept: set[str], wanted: Iterable[str], makings: Mapping[str, list[tuple[str, str]]]) -> None:
    """Keep `wanted`, and the parts of whatever pair makes a kept token."""
    queue = [*kept, *wanted]
    seen: set[str] = set()
    while queue:
        token = queue.pop()
        if token not in seen:
            seen.add(token)
            queue += [part for pair in makings.get(token, ()) for part in pair]
    kept |= seen


def _reduced(
    document: Mapping[str, Any], new: Mapping[int, int], pairs: Iterable[tuple[str, str]], kept: set[str]
) -> dict[str, Any]:
    out: dict[str, Any] = copy.deepcopy({key: value for key, value in document.items() if key != "model"})
    model: dict[str, Any] = {key: value for key, value in document["model"].items() if key not in ("vocab", "merges")}
    prefix = model.get("continuing_subword_prefix") or ""
    model["vocab"] = {token: new[number] for token, number in document["model"]["vocab"].items() if token in kept}
    model["merges"] = [
        [left, right] for left, right in pairs if {left, right, left + right.removeprefix(prefix)} <= kept
    ]
    out["model"] = model
    for token in out["added_tokens"]:
        token["id"] = new[token["id"]]
    _renumber(out.get("post_processor"), new)
    return out


def _renumber(processor: Any, new: Mapping[int, int]) -> None:
    """Give the ids that a post-processor names their new numbers, in place."""
    if not isinstance(processor, dict):
        return
    for token in (processor.get("special_tokens") or {}).values():
        token["ids"] = [new[number] for number in token["ids"]]
    for key in ("sep", "cls"):
        if key in processor:
            processor[key] = [processor[key][0], new[processor[key][1]]]
    for inner in processor.get("processors") or ():
        _renumber(inner, new)
