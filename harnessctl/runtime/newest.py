"""NewestFirst: a list that templates go through backwards, while places in it stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex, overload


class NewestFirst(list[Any]):
    """A list in the order of time that iterates from its newest member to its oldest.

    `x[0]` is still the oldest and `x[-5:]` are still the five newest, newest first: a template that shows a part of the
    list shows the same part. What takes a member from the iteration, Jinja's `first` and `last`, follows the iteration.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return super().__reversed__()

    def __reversed__(self) -> Iterator[Any]:
        return super().__iter__()

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> Any: ...

    @overload
    def __getitem__(self, place: slice, /) -> NewestFirst: ...

    def __getitem__(self, place: SupportsIndex | slice, /) -> Any:
        found = super().__getitem__(place)
        return NewestFirst(found) if isinstance(place, slice) else found
