"""Distractors: tools of uses that no shop, help desk or judge has, for a model to leave alone; in English and Chinese.

Their code is one module whose text never changes: it is given nothing but the arguments and answers at once. The tools
are in `distractors.yaml`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnessctl.augment.languages import Language
from harnessctl.manifests.packaged import packaged_yaml

MODULE = "harnessctl_distractors"
SOURCE = '''"""Tools that a variant has beside those of its harness; made by augmentation. They do nothing."""


def nothing(**arguments):
    """Whatever is asked, there is nothing."""
    return {"status": "nothing to do"}


def refused(**arguments):
    """Whoever asks, it is not permitted."""
    raise PermissionError("this service is not open to you")


nothing.inline = refused.inline = True
'''


@dataclass(slots=True, frozen=True)
class Distractor:
    """A tool in one language. `about`, lower case, are words of which a harness's own tools say none where this one is
    foreign; `short` is its description in a harness that describes its tools in a few words; `docs` is by parameter."""

    name: str
    about: tuple[str, ...]
    description: str
    short: str
    parameters: Mapping[str, Mapping[str, Any]]
    docs: Mapping[str, str]
    required: tuple[str, ...]


@functools.cache
def distractors(language: Language) -> tuple[Distractor, ...]:
    """All of them."""
    return tuple(_distractor(entry, language) for entry in _file())


def _file() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = packaged_yaml(__file__, "distractors.yaml")["tools"]
    return found


def _distractor(entry: Mapping[str, Any], language: Language) -> Distractor:
    description, short, *docs = entry[language]
    parameters: dict[str, Any] = entry["parameters"]
    return Distractor(
        name=entry["name"],
        about=tuple(entry["about"]),
        description=description,
        short=short,
        parameters=parameters,
        docs=dict(zip(parameters, docs, strict=True)),
        required=tuple(entry["required"]),
    )
