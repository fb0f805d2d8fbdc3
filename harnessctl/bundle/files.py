"""The bundle file: canonical JSON of a harness state with its digest, inventory and source map.

The digest is SHA-256 over the canonical JSON of `state` alone. `inventory`, `sources` and `source_map` say where
the state came from and cannot change behaviour.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harnessctl.bundle.state import HarnessState
from harnessctl.errors import BundleError, StorageError
from harnessctl.storage import canonical_json, digest_bytes, read_bytes, write_atomic

FORMAT = "harnessctl/bundle.v1"

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,250}")


class Bundle(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A compiled harness.

    `inventory` is {"skills" | "tools" | "hooks": {name: version}} plus "prompt": {name: ""}; `sources` maps a project
    path to the SHA-256 of the file; `source_map` maps a state path such as `skills/item-qa/rules/lookup` to
    [path, line, col]; `world` names the world that the harness reads, if any.
    """

    format: str
    name: str
    version: str
    digest: str
    state: HarnessState
    inventory: dict[str, dict[str, str]] = {}
    sources: dict[str, str] = {}
    source_map: dict[str, list[Any]] = {}
    world: str | None = None

    @property
    def file_name(self) -> str:
        """`<name>-<version>+<12 hex>.bundle.json`."""
        return f"{self.name}-{self.version}+{self.digest[:12]}.bundle.json"


def state_digest(state: HarnessState) -> str:
    """SHA-256 (64 hex) of the canonical JSON of `state`."""
    return digest_bytes(canonical_json(msgspec.to_builtins(state)))


def make_bundle(state: HarnessState, *, name: str, version: str, **outside: Any) -> Bundle:
    """A bundle of `state` with its digest computed; `outside` are the fields that the digest does not cover."""
    return Bundle(format=FORMAT, name=name, version=version, digest=state_digest(state), state=state, **outside)


def encode_bundle(bundle: Bundle) -> bytes:
    """The bytes of the bundle file: the same on any machine for the same bundle."""
    return canonical_json(msgspec.to_builtins(bundle)) + b"\n"


def write_bundle(bundle: Bundle, folder: Path) -> Path:
    """Write the bundle under its own name into `folder`, atomically; returns the path."""
    path = folder / bundle.file_name
    write_atomic(path, encode_bundle(bundle))
    return path


def read_bundle(path: Path, *, verify: bool = True) -> Bundle:
    """The bundle in `path`. BundleError when it is not a bundle, of another format, or (`verify`) altered."""
    data = read_bytes(path)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BundleError(f"{path}: not a bundle: {error}", hint="make it anew with `harnessctl compile`") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise BundleError(
            f"{path}: not a bundle of format {FORMAT}; got {found!r}",
            hint="compile it again with this version of harnessctl",
        )
    if verify:
        try:
            actual = digest_bytes(canonical_json(document.get("state")))
        except StorageError as error:
            raise BundleError(f"{path}: not a bundle: {error.message}") from error
        if actual != document.get("digest"):
            raise BundleError(
                f"{path}: the state's digest is {actual[:12]}, the file says {str(document.get('digest'))[:12]}",
                hint="the file was altered after it was compiled; compile it again",
            )
    try:
        bundle = msgspec.convert(document, Bundle)
    except msgspec.ValidationError as error:
        hint = "it may be of another version of harnessctl; compile it again with this one"
        raise BundleError(f"{path}: {error}", hint=hint) from error
    if not _FILE_NAME.fullmatch(bundle.file_name):
        raise BundleError(f"{path}: its name and version make no file name: {bundle.file_name[:80]!r}")
    return bundle
