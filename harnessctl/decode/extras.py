"""Extras: the packages of `harnessctl[local]`, named before they are missed."""

from __future__ import annotations

from importlib.util import find_spec

from harnessctl.errors import UsageError

NEEDED = ("llguidance", "safetensors", "tokenizers", "torch", "transformers")


def require_extras(*more: str) -> None:
    """UsageError naming every package that is not installed, of those that all local models need and of `more`."""
    missing = [name for name in (*NEEDED, *more) if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"local models need packages that are not installed: {', '.join(missing)}",
            hint="pip install 'harnessctl[local]'",
        )
