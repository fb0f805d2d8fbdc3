"""Settled: what was opened for a run is left out of the garbage collector's rounds while the run lasts.

Modules, tables and the parent harness make a hundred thousand objects that live as long as the run; going through them
again and again is a twentieth of the time that a variant's item takes.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def settled() -> Generator[None]:
    """Nothing that exists now is looked at by the collector in the block; afterwards all is as it was.

    Where somebody else has frozen objects already (`gc.freeze`), nothing is done: theirs could not be told from ours.
    """
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()
