"""Key-value cache: contexts that the model has read, kept so that no shared beginning is read twice.

What always holds: a context's `ids` are exactly the tokens whose keys and values it holds. A context is used by one
reply at a time; a beginning that others may still need is copied, never cut.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

ROOM = 256


class GrowingLayer(DynamicLayer):
    """Keys and values of one layer in a buffer with room to grow.

    The stock layer copies the whole cache for each token: at 1,500 tokens of SmolLM2 that is 69 MB a token.
    """

    def __init__(self) -> None:
        super().__init__()
        self._key_room: torch.Tensor | None = None
        self._value_room: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append (batch, heads, tokens, width) states; returns all of them as views."""
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        self._make_room(key_states, value_states, start, end)
        assert self._key_room is not None and self._value_room is not None
        self._key_room[..., start:end, :] = key_states
        self._value_room[..., start:end, :] = value_states
        self.keys = self._key_room[..., :end, :]
        self.values = self._value_room[..., :end, :]
        return self.keys, self.values

    def _make_room(self, keys: torch.Tensor, values: torch.Tensor, start: int, end: int) -> None:
        if self._key_room is not None and end <= self._key_room.shape[-2]:
            return
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        grown = max(end + ROOM, 2 * start)
        key_room = keys.new_empty((*keys.shape[:-2], grown, keys.shape[-1]))
        value_room = values.new_empty((*values.shape[:-2], grown, values.shape[-1]))
        if start and self.keys is not None and self.values is not None:
            key_room[..., :start, :] = self.keys
            value_room[..., :start, :] = self.values
        self._key_room, self._value_room = key_room, value_room

    def fork(self, length: int) -> GrowingLayer:
        """A copy of the first `length` tokens, with room of its own."""
        layer = GrowingLayer()
        if length and self.keys is not None and self.values is not None:
            layer.update(self.keys[..., :length, :], self.values[..., :length, :])
        return layer


class Context:
    """Tokens that the model has read, with their keys and values."""

    def __init__(self, cache: DynamicCache, ids: list[int]) -> None:
        self.cache = cache
        self.ids = ids
        # Sliding windows and linear attention keep states that cannot be cut back to an earlier token.
        self.can_cut = all(isinstance(layer, GrowingLayer) for layer in cache.layers)

    @classmethod
    def empty(cls, config: PreTrainedConfig) -> Context:
        """A context of no tokens for a model of this configuration."""
        cache = DynamicCache(config=config)
        cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
        return cls(cache, [])

    def fork(self, length: int) -> Context:
        """A copy of the first `length` tokens."""
        if not self.can_cut:
            return Context(copy.deepcopy(self.cache), list(self.ids))
        cache = copy.copy(self.cache)
        cache.layers = [layer.fork(length) for layer in self.cache.layers if isinstance(layer, GrowingLayer)]
        return Context(cache, self.ids[:length])

    def cut(self, length: int) -> None:
        """Forget the tokens from `length` on."""
        if length < len(self.ids):
            self.cache.crop(length - len(self.ids))
            del self.ids[length:]

    @property
    def bytes(self) -> int:
        """Memory of the keys and values, the room to grow included."""
        tensors = (getattr(layer, name, None) for layer in self.cache.layers for name in ("keys", "values"))
        return sum(tensor.untyped_storage().nbytes() for tensor in tensors if tensor is not None)


class ContextStore:
    """The contexts that are not in use, the least recently used dropped beyond `max_bytes`. For one thread."""

    def __init__(self, config: PreTrainedConfig, max_bytes: int) -> None:
        self._config = config
        self._max_bytes = max_bytes
        self._kept: list[Context] = []

    def take(self, ids: list[int]) -> Context:
        """A context that holds a beginning of `ids`, the longest to be had, and never all of them.

        A kept context that is a beginning as a whole is handed over; of any other the shared part is copied.
        """
        best, shared = None, 0
        for context in self._kept:
            length = min(shared_length(context.ids, ids), len(ids) - 1)
            if length > shared and (context.can_cut or length == len(context.ids)):
                best, shared = context, length
        if best is None:
            return Context.empty(self._config)
        self._kept.remove(best)
        if shared == len(best.ids):
            return best
        self._kept.append(best)
        return best.fork(shared)

    def put(self, context: Context) -> None:
        """Keep a context for later; the oldest ones make room for it."""
        self._kept.append(context)
        used = sum(kept.bytes for kept in self._kept)
        while used > self._max_bytes and len(self._kept) > 1:
            used -= self._kept.pop(0).bytes

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


def shared_length(left: list[int], right: list[int]) -> int:
    """How many tokens two lists have in common from the start."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low
