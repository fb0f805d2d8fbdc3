"""A small shop project that compiles, and ways to change it and look at what the compiler says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from compile_shop import SHOP

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile import compile_project, validate_project

Write = Callable[[Mapping[str, str | bytes]], Path]


@pytest.fixture
def shop(project: Write) -> Callable[..., Path]:
    """Writes the shop with files replaced (path to text), or changed (path to a pair: what, by what)."""

    def write(changes: Mapping[str, str | bytes | tuple[str, str]] | None = None) -> Path:
        files: dict[str, str | bytes] = dict(SHOP)
        for path, change in (changes or {}).items():
            if isinstance(change, tuple):
                text = files[path]
                assert isinstance(text, str) and change[0] in text, (path, change[0])
                files[path] = text.replace(*change)
            else:
                files[path] = change
        return project(files)

    return write


@pytest.fixture
def faults(shop: Callable[..., Path]) -> Callable[..., list[str]]:
    """What `validate` says of the changed shop: each fault as a person sees it."""

    def find(changes: Mapping[str, str | bytes | tuple[str, str]] | None = None) -> list[str]:
        return [fault.render() for fault in sorted(validate_project(shop(changes)).items)]

    return find


@pytest.fixture
def bundle(shop: Callable[..., Path]) -> Callable[..., Bundle]:
    """The bundle of the changed shop."""

    def make(changes: Mapping[str, str | bytes | tuple[str, str]] | None = None) -> Bundle:
        return read_bundle(compile_project(shop(changes)).path())

    return make
