"""Circuits: what the first two layers of a new model can do before any training: look at the tokens before, and go on as
a text did before.

That takes two heads in a row [induction heads: Olsson et al., 2022]: one that writes into each position which token stands
before it, and one that looks for the position whose token before is the present one. Out of random weights they form late,
and what needs them is learnt later still (docs/log.md has the figures). So they are written down, as mimetic initialization
[Trockman and Kolter, 2023] does with what trained attention looks like.

What always holds: all other weights are small random ones; training is free to change every one of them.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harnessctl.errors import CheckpointError
from harnessctl.train.base.config import MakeConfig

#: Size of the constant coordinate of an embedding, beside the token's own part of length 1.
_CONSTANT = 0.5
#: How much of a token's own part (of its length's square) is random: alike words are to be told apart, too.
_APART = 0.4
#: Pairs of coordinates that turn by more (radians a token) tell neighbours apart; by less, hardly turn within a prompt.
_FAST, _SLOW = 0.15, 0.0025
#: Logits of attention: of a place over the next one; of a token that is the same, and of one before it that is the same.
_PEAK, _SAME, _SAME_BEFORE = 8.0, 10.0, 7.0
#: What further heads of the first layer look at (about so many places back), by a smaller logit, and how much they tell.
_FURTHER, _BROAD, _TOLD = (3, 5, 6, 9, 12, 15), 1.0, 0.3
#: How much longer than an embedding is what an induction head adds.
_GAIN = 2.1


@dataclass(frozen=True)
class Circuits:
    """Where things stand in the residual stream: a constant first, then `own` coordinates of the token itself, then two
    blocks of `block` that say which token stands before, and which before that. `basis` (own, own) is orthogonal."""

    shape: MakeConfig
    own: int
    block: int
    basis: Tensor
    generator: torch.Generator

    @classmethod
    def of(cls, shape: MakeConfig, generator: torch.Generator) -> Circuits:
        """CheckpointError where the heads are too few or too small."""
        own = shape.width * 5 // 8 - 1
        block = min((shape.width - own - 1) // 2, shape.head_dim)
        if shape.layers < 2 or shape.heads < 2 or shape.heads * shape.head_dim < own or len(_slow(shape)) < 4:
            raise CheckpointError(
                f"make: {shape.layers} layers of {shape.heads} heads of {shape.head_dim} at rope_theta {shape.rope_theta:g} "
                "have no room for the heads that a new model begins with",
                hint="two layers and two heads at least, heads * head_dim not under the width, rope_theta from 1e6 on; or "
                "make.circuits=false",
            )
        basis = torch.linalg.qr(torch.randn(own, own, generator=generator))[0]
        return cls(shape, own, block, basis, generator)

    def embeddings(self, meanings: Tensor) -> Tensor:
        """(vocabulary, width), each token as long as another. Tokens are alike as their `meanings` (vocabulary, any width)
        are along the main directions of these, all of which count alike, but for a random part (docs/log.md)."""
        centred = torch.nn.functional.normalize(meanings.float() - meanings.float().mean(0))
        along = torch.linalg.svd(centred - centred.mean(0), full_matrices=False).U[:, : self.own]
        found = torch.zeros(len(meanings), self.shape.width)
        found[:, 0] = _CONSTANT
        alike = torch.nn.functional.normalize(along) @ self.basis[: along.shape[1]]
        apart = torch.nn.functional.normalize(torch.randn(alike.shape, generator=self.generator))
        own = math.sqrt(1 - _APART) * alike + math.sqrt(_APART) * apart
        found[:, 1 : 1 + self.own] = torch.nn.functional.normalize(own)
        return found

    def write(self, tensors: MutableMapping[str, Tensor]) -> None:
        """Put the heads in the place of random ones."""
        first, second = _Layer(tensors, 0, self.shape), _Layer(tensors, 1, self.shape)
        further = _FURTHER[: self.shape.heads - 2]
        scale = math.sqrt(self.shape.width / (1 + _CONSTANT**2))
        for number in (0, 1):
            self._look_back(first, number, back=number + 1, peak=_PEAK, scale=scale)
            self._tell_in_block(first, number, scale=scale)
        for head, back in enumerate(further, start=2):
            self._look_back(first, head, back=back, peak=_BROAD, scale=scale)
            self._tell(first, head, scale=scale)
        # Each block holds as much as a token's own part, and what the others tell is small beside it.
        scale = math.sqrt(self.shape.width / (1 + _CONSTANT**2 + 2 + len(further) * _TOLD**2))
        for part in range(math.ceil(self.own / self.shape.head_dim)):
            self._go_on(second, part, scale=scale)

    def _rows(self, begin: int, end: int) -> Tensor:
        """(end - begin, width): projections of a token's own part."""
        found = torch.zeros(end - begin, self.shape.width)
        found[:, 1 : 1 + self.own] = self.basis[:, begin:end].T
        return found

    def _place(self, block: int) -> int:
        return 1 + self.own + block * self.block

    def _share(self, size: int) -> float:
        """How long `size` coordinates of a token's own part are, on average."""
        return math.sqrt(size / self.own)

    def _look_back(self, layer: _Layer, head: int, *, back: int, peak: float, scale: float) -> None:
        """Make a head attend `back` places before, by a logit of `peak` over the next place.

        The query is constant and the key turned by `back` places, so that their product is greatest there.
        """
        shape = self.shape
        speeds = [speed for speed in _speeds(shape).tolist() if speed > _FAST]
        contrast = sum(1 - math.cos(speed) for speed in speeds)
        size = math.sqrt(peak * math.sqrt(shape.head_dim) / contrast) / (_CONSTANT * scale)
        query, key = layer.faint(head), layer.faint(head)
        for pair, speed in enumerate(speeds):
            query[pair, 0] = size
            key[pair, 0] = size * math.cos(back * speed)
            key[pair + shape.head_dim // 2, 0] = size * math.sin(back * speed)
        layer.put(head, query=query, key=key)

    def _tell_in_block(self, layer: _Layer, number: int, *, scale: float) -> None:
        """Make head `number` write into the block of that number what it attends to."""
        place = self._place(number)
        output = torch.zeros(self.shape.width, self.shape.head_dim)
        output[place : place + self.block, : self.block] = torch.eye(self.block) / (scale * self._share(self.block))
        layer.put(number, value=self._value(0, self.block), output=output)

    def _tell(self, layer: _Layer, head: int, *, scale: float) -> None:
        """Make a head write a part of what it attends to, in directions of its own."""
        size = min(self.shape.head_dim, self.own)
        output = torch.nn.functional.normalize(layer.output(head), dim=0) * (_TOLD / (scale * self._share(size)))
        layer.put(head, value=self._value(0, size), output=output)

    def _go_on(self, layer: _Layer, part: int, *, scale: float) -> None:
        """Make a head attend to where the token before is the present one, and the one before that as well, and add a part
        of the token that stands there."""
        shape = self.shape
        slow = _slow(shape)
        half = min(len(slow) // 2, self.block)
        same, before = (
            math.sqrt(logit * math.sqrt(shape.head_dim)) / (scale * self._share(half))
            for logit in (_SAME, _SAME_BEFORE)
        )
        query, key, own = layer.faint(part), layer.faint(part), self._rows(0, half)
        for number in range(half):
            row, other = slow[number], slow[half + number]
            query[row], key[row] = own[number] * same, 0.0
            key[row, self._place(0) + number] = same
            query[other] = key[other] = 0.0
            query[other, self._place(0) + number] = key[other, self._place(1) + number] = before
        value = self._value(part * shape.head_dim, min((part + 1) * shape.head_dim, self.own))
        output = value.T * (_GAIN / (scale * self._share(shape.head_dim)))
        layer.put(part, query=query, key=key, value=value, output=output)

    def _value(self, begin: int, end: int) -> Tensor:
        """(head_dim, width): those projections of a token's own part, and zeros."""
        found = torch.zeros(self.shape.head_dim, self.shape.width)
        found[: end - begin] = self._rows(begin, end)
        return found


@dataclass(frozen=True)
class _Layer:
    """The attention of one layer, among `tensors`."""

    tensors: MutableMapping[str, Tensor]
    number: int
    shape: MakeConfig

    def faint(self, head: int) -> Tensor:
        """(head_dim, width): random weights, a twentieth of what others are."""
        return self._weight("q")[self._slice(head)].clone() * 0.05

    def output(self, head: int) -> Tensor:
        """(width, head_dim): what the head's output is now."""
        return self._weight("o")[:, self._slice(head)].clone()

    def put(self, head: int, *, output: Tensor | None = None, **weights: Tensor) -> None:
        """Make these (query, key, value, output) the head's weights, and leave the others."""
        place = self._slice(head)
        for name, weight in weights.items():
            self._weight(name[0])[place] = weight
        if output is not None:
            self._weight("o")[:, place] = output

    def _slice(self, head: int) -> slice:
        return slice(head * self.shape.head_dim, (head + 1) * self.shape.head_dim)

    def _weight(self, letter: str) -> Any:
        return self.tensors[f"model.layers.{self.number}.self_attn.{letter}_proj.weight"]


def _speeds(shape: MakeConfig) -> Tensor:
    """Radians a token that each pair of coordinates (i, i + head_dim / 2) turns by [Su et al., 2021]."""
    half = shape.head_dim // 2
    return shape.rope_theta ** (-torch.arange(half).double() / half)


def _slow(shape: MakeConfig) -> list[int]:
    """The coordinates of a head whose products hardly depend on how far apart two tokens stand."""
    half = shape.head_dim // 2
    pairs = [pair for pair, speed in enumerate(_speeds(shape).tolist()) if speed < _SLOW]
    return pairs + [pair + half for pair in pairs]
