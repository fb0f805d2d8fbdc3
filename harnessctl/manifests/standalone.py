"""Standalone manifests: those that stand beside a harness and are read by themselves: envelopes, suites."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.load import Document, load_yaml
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.violations import type_name
from harnessctl.storage import read_bytes

T = TypeVar("T")


def shown(path: Path, root: Path | None) -> str:
    """How a file is named: from the project's root where it lies in it."""
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return str(path)


def read_manifest(
    path: Path, kind: str, spec: type[T], faults: Faults, *, name: str, misnamed: str
) -> tuple[Document, T] | None:
    """The manifest of a kind in a file that is called by its name (`name`: how the file is shown); None, and faults, where
    it is not one. A name that is not the file's is a fault, `misnamed`, beside what is given back."""
    if not path.is_file():
        faults.add(Fault(name, 0, 0, "source-unreadable", "the file cannot be read: it is no regular file"))
        return None
    document = load_yaml(name, read_bytes(path), faults)
    if document is None:
        return None
    if not isinstance(document.value, dict):
        got = "nothing" if document.value is None else type_name(document.value)
        hint = f"begin with the lines: apiVersion: harnessctl/v1 / kind: {kind}"
        faults.add(Fault(name, 1, 1, "manifest-empty", "the file is not a manifest", got, "a mapping", hint))
        return None
    manifest = convert(document, kind, spec, faults)
    if manifest is None:
        return None
    called = document.get("name")
    if called != path.stem:
        hint = f"write name: {path.stem}, or rename the file"
        message = f"the {kind.lower()}'s name is not its file's"
        faults.add(document.fault(misnamed, message, "name", got=called, allowed=path.stem, hint=hint))
    return document, manifest
