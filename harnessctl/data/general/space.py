"""Space: the two halves that names and matters are split into, so that a measure can ask for what was never trained on.

What always holds: a word, a syllable or a matter belongs to one space, by its own text alone; adding others moves none.
"""

from __future__ import annotations

import zlib
from typing import Literal

Space = Literal["train", "held-out"]

#: One in so many is held out.
WORDS_IN = 5
CONCEPTS_IN = 10


def space_of(text: str, *, one_in: int = WORDS_IN) -> Space:
    """The space that `text` belongs to."""
    return "held-out" if zlib.crc32(text.encode()) % one_in == 0 else "train"
