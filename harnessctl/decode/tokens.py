"""Token codec: segments to ids and ids to text, with a wall between control and data.

What always holds: the ids of a data segment contain no id of an added token (special or not), and decode to its text.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from tokenizers import Tokenizer

from harnessctl.decode.template import Segment
from harnessctl.errors import UsageError


class TokenCodec:
    """A tokenizer twice: once with its added tokens for control text, once without any for data.

    `special_ids` are the added tokens that are marked special, `added_ids` all of them; `end_id` ends a message.
    """

    def __init__(self, tokenizer: Tokenizer, *, end: str) -> None:
        document = orjson.loads(tokenizer.to_str())
        document["truncation"] = document["padding"] = None
        added = document["added_tokens"]
        self.source = orjson.dumps(document).decode()
        self._control = Tokenizer.from_str(self.source)
        # `encode_special_tokens` would still let added tokens through that are not marked special, such as
        # `<tool_call>` of the Qwen family.
        self._data = Tokenizer.from_str(orjson.dumps({**document, "added_tokens": []}).decode())
        self.added_ids = frozenset(token["id"] for token in added)
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        ids = self._control.encode(end, add_special_tokens=False).ids
        if len(ids) != 1 or ids[0] not in self.added_ids:
            raise UsageError(
                f"the tokenizer does not know {end!r}, with which the chat template ends a message, as one token",
                hint="give the template that the model was trained with",
            )
        self.end_id: int = ids[0]

    def encode(self, segments: Iterable[Segment]) -> list[int]:
        """The ids of the segments, each encoded on its own."""
        ids: list[int] = []
        for text, control in segments:
            if control:
                ids += self._control.encode(text, add_special_tokens=False).ids
            else:
                ids += self.encode_data(text)
        return ids

    def encode_data(self, text: str) -> list[int]:
        """The ids of text that is nobody's to command with. What is not UTF-8 (lone surrogates) becomes `?`."""
        text = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._data.encode(text, add_special_tokens=False).ids
        if self.added_ids.isdisjoint(ids):
            return ids
        # A tokenizer that takes whole words from its vocabulary can still reach an added token by its spelling;
        # no added token is spelled with one character.
        return [token for character in text for token in self._data.encode(character, add_special_tokens=False).ids]

    def decode(self, ids: list[int]) -> str:
        """The text of the ids, added tokens spelled out."""
        return self._control.decode(ids, skip_special_tokens=False)
