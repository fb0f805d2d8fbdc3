"""Slots: the keys and values of many sequences in one buffer a layer, each sequence in a row of its own.

What always holds: `ids[slot]` are exactly the tokens whose keys and values the slot holds, from its position 0 on. A slot
that is not taken is parked: it keeps its tokens until its place is needed, the least recently used first. What is shared
with a new sequence is copied, or taken over where a parked slot is a beginning of it as a whole.
"""

from __future__ import annotations

import torch

from harnessctl.decode.kv import shared_length

#: Positions are cleaned, and rooms sized, in steps of this many.
BLOCK = 64
FIRST_ROOM = 512


class SlotLayerRoom:
    """Keys and values of one layer: (slots, heads, room, width) each; made at the first write, which says the shapes."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def fit(
        self, keys: torch.Tensor, values: torch.Tensor, room: int, ids: list[list[int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The buffers with at least `room` positions, for states like `keys` and `values` (1, heads, tokens, width);
        of each slot what holds its `ids` is kept."""
        self.keys = _fit(self.keys, keys, room, ids)
        self.values = _fit(self.values, values, room, ids)
        return self.keys, self.values

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of a slot into another."""
        for room in (self.keys, self.values):
            if room is not None:
                room[target, :, :length] = room[source, :, :length]


def _fit(held: torch.Tensor | None, states: torch.Tensor, room: int, ids: list[list[int]]) -> torch.Tensor:
    if held is not None and held.shape[2] >= room:
        return held
    # Memory that is never written is never had, on a CPU: so the slots that hold nothing are left alone.
    grown = states.new_empty((len(ids), states.shape[1], room, states.shape[3]))
    if held is not None:
        for slot, length in enumerate(map(len, ids)):
            grown[slot, :, :length] = held[slot, :, :length]
    return grown


class Slots:
    """The sequences of `count` slots for a model of `layers` layers. For one thread.

    `room` is how many positions each slot has; `clean[slot]` up to which position its memory holds numbers (kept ones or
    zeros): beyond may lie anything, even NaN, which a mask does not take out of a product.
    """

    def __init__(self, count: int, layers: int) -> None:
        self.layers = [SlotLayerRoom() for _ in range(layers)]
        self.ids: list[list[int]] = [[] for _ in range(count)]
        self.clean = [0] * count
        self.room = FIRST_ROOM
        self._taken: set[int] = set()
        self._used = [0] * count
        self._tick = 0

    def shared(self, ids: list[int]) -> int:
        """How many of `ids` some slot holds, from the start, less than all of them."""
        return self._best(ids)[1]

    def take(self, ids: list[int]) -> int:
        """A slot for a sequence that begins with `ids`; its own `ids` say what of them it holds: never all, so that there
        is one left to read. One slot must be free."""
        source, length = self._best(ids)
        if source is not None and source not in self._taken and length == len(self.ids[source]):
            return self._mark(source)
        free = [slot for slot in range(len(self.ids)) if slot not in self._taken]
        # The source goes last: with it would go what others may still share.
        slot = min(free, key=lambda slot: (slot == source, bool(self.ids[slot]), self._used[slot], slot))
        if source is not None and slot != source:
            for layer in self.layers:
                layer.copy(source, slot, length)
            self.clean[slot] = max(self.clean[slot], length)
            self.ids[slot] = self.ids[source][:length]
        else:
            del self.ids[slot][length:]
        return self._mark(slot)

    def park(self, slot: int) -> None:
        """Give a slot back; what it holds stays for others."""
        self._taken.discard(slot)
        self._touch(slot)

    def clear(self) -> None:
        """Forget every sequence that is not being read."""
        for slot in range(len(self.ids)):
            if slot not in self._taken:
                self.ids[slot] = []
                self.clean[slot] = 0

    def grow(self, length: int) -> None:
        """Make room for `length` positions a slot; buffers follow at the next write, with what the slots hold."""
        if self.room < length:
            self.clean = [len(held) for held in self.ids]
        while self.room < length:
            self.room *= 2

    def _best(self, ids: list[int]) -> tuple[int | None, int]:
        """(slot that holds the most of `ids`, how many): a parked one before a taken one, where they hold as many."""
        best, most = None, 0
        for slot, held in enumerate(self.ids):
            length = min(shared_length(held, ids), len(ids) - 1)
            whole = length == len(held) and slot not in self._taken
            if length > most or (length == most > 0 and whole and best in self._taken):
                best, most = slot, length
        return best, most

    def _mark(self, slot: int) -> int:
        self._taken.add(slot)
        self._touch(slot)
        return slot

    def _touch(self, slot: int) -> None:
        self._tick += 1
        self._used[slot] = self._tick
