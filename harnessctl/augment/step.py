"""Step: an operator with what an envelope says of it, and its turn in the making of a variant."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from harnessctl.augment.discovery import line_in, shipped_operators
from harnessctl.augment.operator import Draft, Operator, Settings
from harnessctl.augment.stream import Stream
from harnessctl.errors import HarnessctlError, OperatorError
from harnessctl.runtime.foreign import is_interrupt, said

#: How many targets a step remembers its patterns' answer for.
_TARGETS_KEPT = 4096
#: More than a harness has of anything; one that lists more goes on for ever.
_MOST_TARGETS = 100_000


class Step:
    """An operator with its settings; `is_foreign` when it is not a shipped one."""

    def __init__(self, operator: Operator, settings: Settings) -> None:
        self.operator = operator
        self.is_foreign = shipped_operators().get(operator.name) is not operator
        self.settings = settings
        self._is_open = not settings.allow and not settings.deny
        self._allowed: dict[str, bool] = {}

    def run(self, draft: Draft) -> None:
        """Draw for each target that the envelope allows, and change those that are drawn."""
        operator, settings, rate = self.operator, self.settings, self.settings.rate
        # A stream is known by its names joined: these are those of Stream(seed, number, operator, target).
        names = f"{draft.seed}\0{draft.number}\0{operator.name}"
        target = ""
        done: list[str] = []
        try:
            targets = operator.targets(draft)
            for target in _checked(targets) if self.is_foreign else targets:
                if not self._is_open and not self._allows(target):
                    continue
                stream = Stream(names, target)
                if stream.chance(rate) and operator.apply(target, draft, settings, stream):
                    done.append(target)
        except HarnessctlError:
            raise
        except BaseException as error:
            # An operator may be anybody's code.
            if is_interrupt(error):
                raise
            raise self._failure(target, error) from error
        if done:
            draft.applied[operator.name] = done

    def _allows(self, target: str) -> bool:
        found = self._allowed.get(target)
        if found is None:
            if len(self._allowed) >= _TARGETS_KEPT:
                self._allowed.clear()
            found = self._allowed[target] = allows(self.settings, target)
        return found

    def _failure(self, target: str, error: BaseException) -> OperatorError:
        path = Path(type(self.operator).apply.__code__.co_filename)
        line = line_in(error, path)
        where = f" ({path.name}:{line})" if line else ""
        at = f" at {target}" if target else ""
        return OperatorError(
            f"the operator {self.operator.name} failed{at}: {type(error).__name__}: {said(error)}{where}"
        )


def _checked(targets: Iterable[str]) -> list[str]:
    """What somebody's operator lists, if it is a list of texts that ends."""
    if isinstance(targets, str):
        raise TypeError(f"`targets` gives the text {targets!r}, not a list of texts")
    found = list(islice(targets, _MOST_TARGETS + 1))
    if len(found) > _MOST_TARGETS:
        raise ValueError(f"`targets` gives more than {_MOST_TARGETS} targets")
    if not all(isinstance(target, str) for target in found):
        raise TypeError("`targets` gives something else than texts")
    return found


def allows(settings: Settings, target: str) -> bool:
    """Whether an envelope's `allow` and `deny` leave a target open: one pattern of `allow`, none of `deny` fits it."""
    if any(fnmatchcase(target, pattern) for pattern in settings.deny):
        return False
    return not settings.allow or any(fnmatchcase(target, pattern) for pattern in settings.allow)
