"""Extras: the packages of `harnessctl[eval]`, named before they are missed."""

from __future__ import annotations

from importlib.util import find_spec

from harnessctl.errors import UsageError


def require_numpy() -> None:
    """UsageError where numpy is not installed."""
    if find_spec("numpy") is None:
        raise UsageError(
            "comparing runs needs a package that is not installed: numpy", hint="pip install 'harnessctl[eval]'"
        )
