"""Passes: one forward pass that reads new tokens of many slots, however many of each.

What always holds: the new tokens of all slots are one packed sequence, so nothing is computed for padding; a token
attends to its own slot's tokens up to itself. Where slots that lie side by side read equally many tokens, they attend in
one call; what then lies beyond a slot's own length is masked, and clean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

from harnessctl.decode.slots import BLOCK, SlotLayerRoom, Slots

ATTENTION = "harnessctl_slots"
#: Slots that read more tokens than this attend one by one: their masks would be large and save nothing.
JOINED_TOKENS = 8
#: What a layer may ask of its attention that is not computed here.
_UNKNOWN = ("softcap", "s_aux", "sliding_window", "position_bias")


class Feed(NamedTuple):
    """Tokens that a slot reads; logits are wanted for the last `keep` of them."""

    slot: int
    ids: list[int]
    keep: int


class _Part:
    """Slots `first` to `first + count` that read `tokens` tokens each, the packed ones from `start` on; `lengths` are
    what they held before."""

    def __init__(self, start: int, first: int, tokens: int, length: int) -> None:
        self.start = start
        self.first = first
        self.tokens = tokens
        self.lengths = [length]
        self.total = length + tokens
        self._mask: torch.Tensor | None = None

    def joins(self, feed: Feed, length: int) -> bool:
        """Take the next feed in, if it is alike and lies beside."""
        if len(feed.ids) != self.tokens or self.tokens > JOINED_TOKENS or feed.slot != self.first + len(self.lengths):
            return False
        self.lengths.append(length)
        self.total = max(self.total, length + self.tokens)
        return True

    @property
    def is_even(self) -> bool:
        """Whether every slot's one token sees all that is given to it."""
        return self.tokens == 1 and len(set(self.lengths)) == 1

    def mask(self, copies: int, like: torch.Tensor) -> torch.Tensor | None:
        """(slots, 1, copies * tokens, total): 0 where a token sees a key, else -inf. The same for all layers."""
        if self.is_even:
            return None
        if self._mask is None:
            lengths = torch.tensor(self.lengths)[:, None] + torch.arange(self.tokens)
            hidden = torch.arange(self.total) > lengths[..., None]
            mask = torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[:, None]
            copied = copies if self.tokens > 1 else 1
            self._mask = mask.repeat(1, 1, copied, 1).to(like.device, like.dtype)
        return self._mask


class Pass:
    """The lay-out of one pass: where each packed token goes, and who attends to what. `attended` counts layers."""

    def __init__(self, slots: Slots, feeds: list[Feed], device: torch.device) -> None:
        self.attended = 0
        self.parts: list[_Part] = []
        self.tidy: list[tuple[int, int, int]] = []
        ids: list[int] = []
        rows: list[int] = []
        positions: list[int] = []
        kept: list[int] = []
        for feed in feeds:
            length, count = len(slots.ids[feed.slot]), len(feed.ids)
            if not (self.parts and self.parts[-1].joins(feed, length)):
                self.parts.append(_Part(len(ids), feed.slot, count, length))
            ids += feed.ids
            rows += [feed.slot] * count
            positions += range(length, length + count)
            kept += range(len(ids) - feed.keep, len(ids))
        self._clean(slots)
        self.ids = torch.tensor([ids], device=device)
        self.rows = torch.tensor(rows, device=device)
        self.positions = torch.tensor(positions, device=device)
        self.kept = torch.tensor(kept or [len(ids) - 1], device=device)

    def _clean(self, slots: Slots) -> None:
        """Note what must be zeroed, so that nothing a part looks at is left as the memory came."""
        for part in self.parts:
            for slot, length in enumerate(part.lengths, part.first):
                slots.clean[slot] = max(slots.clean[slot], length + part.tokens)
                if slots.clean[slot] < part.total:
                    end = -(-part.total // BLOCK) * BLOCK
                    self.tidy.append((slot, slots.clean[slot], end))
                    slots.clean[slot] = end


class SlotLayer(CacheLayerMixin):
    """One layer of the cache, as transformers calls it: writes each token's states into its slot."""

    is_sliding = False

    def __init__(self, slots: Slots, room: SlotLayerRoom) -> None:
        super().__init__()
        self._slots = slots
        self._room = room
        self.plan: Pass | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write states (1, heads, tokens, width); returns the whole buffers, for `attend` to look into."""
        plan = self.plan
        assert plan is not None
        keys, values = self._room.fit(key_states, value_states, self._slots.room, self._slots.ids)
        keys[plan.rows, :, plan.positions] = key_states[0].transpose(0, 1)
        values[plan.rows, :, plan.positions] = value_states[0].transpose(0, 1)
        for slot, start, end in plan.tidy:
            keys[slot, :, start:end] = 0
            values[slot, :, start:end] = 0
        return keys, values

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing: the first write makes the buffers."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Not asked for: `attend` masks by itself."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """0: slots have lengths of their own, and positions are always given."""
        return 0

    def get_max_length(self) -> int:
        """No maximum."""
        return -1


def attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    slot_pass: Pass | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """The attention of packed tokens: `query` (1, heads, tokens, width) over the buffers of a layer; returns (1, tokens,
    heads, width). Query heads that share a key head are laid side by side, so that keys are never repeated."""
    if slot_pass is None:
        raise RuntimeError(f"{type(module).__name__} does not hand its keywords on to its attention")
    if unknown := [name for name in _UNKNOWN if options.get(name) is not None]:
        raise RuntimeError(f"{type(module).__name__} attends with {', '.join(unknown)}, which slots do not compute")
    slot_pass.attended += 1
    heads, shared = query.shape[1], key.shape[1]
    copies = heads // shared
    out = query.new_empty((query.shape[2], heads, value.shape[-1]))
    for part in slot_pass.parts:
        count, tokens = len(part.lengths), part.tokens
        end, last = part.start + count * tokens, part.first + count
        asked = query[0, :, part.start : end].reshape(shared, copies, count, tokens, -1).permute(2, 0, 1, 3, 4)
        found = scaled_dot_product_attention(
            asked.reshape(count, shared, copies * tokens, -1),
            key[part.first : last, :, : part.total],
            value[part.first : last, :, : part.total],
            attn_mask=part.mask(copies, query),
            scale=scaling,
        )
        found = found.reshape(count, shared, copies, tokens, -1).permute(0, 3, 1, 2, 4)
        out[part.start : end] = found.reshape(count * tokens, heads, -1)
    return out[None], None


AttentionInterface.register(ATTENTION, attend)


class SlotReader:
    """Reads tokens into slots with `twin`, a model that attends with `ATTENTION`."""

    def __init__(self, twin: Any, slots: Slots, device: torch.device) -> None:
        self._twin = twin
        self._slots = slots
        self._device = device
        self._layers = [SlotLayer(slots, room) for room in slots.layers]
        self._cache = Cache(layers=list(self._layers))

    def read(self, feeds: list[Feed]) -> list[torch.Tensor]:
        """One pass over the feeds, in order of their slots; the logits (keep, V) of each, float32 on the CPU.

        RuntimeError when a layer did not attend as it should: nothing is computed in another way in silence.
        """
        slots = self._slots
        longest = max(len(slots.ids[feed.slot]) + len(feed.ids) for feed in feeds)
        slots.grow(-(-longest // BLOCK) * BLOCK)
        plan = Pass(slots, feeds, self._device)
        for layer in self._layers:
            layer.plan = plan
        out = self._twin(
            input_ids=plan.ids,
            position_ids=plan.positions[None],
            cache=self._cache,
            use_cache=True,
            logits_to_keep=plan.kept,
            slot_pass=plan,
        )
        if plan.attended != len(self._layers):
            raise RuntimeError(f"{plan.attended} of {len(self._layers)} layers attended to the slots")
        for feed in feeds:
            slots.ids[feed.slot] += feed.ids
        logits = out.logits[0].float().cpu()
        return list(logits[: sum(feed.keep for feed in feeds)].split([feed.keep for feed in feeds]))
