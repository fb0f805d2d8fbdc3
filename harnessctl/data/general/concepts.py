"""Concepts: the matters that a look-up by meaning is about, each named in several ways and asked for in several wishes."""

from __future__ import annotations

import functools

import msgspec

from harnessctl.data.general.space import CONCEPTS_IN, Space, space_of
from harnessctl.manifests.packaged import packaged_yaml


class Concept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One matter. `about` describe it; `asks` are wishes that are about it and mostly share no word with `about`."""

    about: tuple[str, ...]
    asks: tuple[str, ...]


@functools.cache
def concepts_of(space: Space) -> tuple[Concept, ...]:
    """The matters of a space, in the order of the file."""
    return tuple(c for c in _all() if space_of(c.about[0], one_in=CONCEPTS_IN) == space)


@functools.cache
def _all() -> tuple[Concept, ...]:
    return msgspec.convert(packaged_yaml(__file__, "concepts.yaml"), tuple[Concept, ...])
