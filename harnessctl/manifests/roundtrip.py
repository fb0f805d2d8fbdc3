"""Round trip: YAML read, changed and written with its comments and layout, by the same rules of scalars as `load`.

ruamel.yaml's own YAML 1.2 still reads `1_000`, `0b1`, `-0x1` and dates as other things than the core schema does, so it
is given the core schema's patterns. Only for files that are edited: it is many times slower than `load`.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.resolver import VersionedResolver

from harnessctl.manifests.scalars import PATTERNS


class CoreResolver(VersionedResolver):
    """Plain scalars as the YAML 1.2 core schema has them."""

    @property
    def versioned_resolver(self) -> dict[str | None, list[Any]]:
        return {None: list(PATTERNS)}


def round_trip() -> YAML:
    """A new reader and writer that keeps comments, order, quotes and the layout of lists; lines are never folded."""
    yaml = YAML(typ="rt")
    yaml.Resolver = CoreResolver
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
