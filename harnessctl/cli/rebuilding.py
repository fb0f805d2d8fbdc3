"""The work behind `harnessctl augment --rebuild`: one variant's bundle again, byte for byte, from its record."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harnessctl.augment.job import PARENT, RECORDS, read_variations
from harnessctl.bundle.files import Bundle, encode_bundle, read_bundle
from harnessctl.bundle.variation import rebuild
from harnessctl.cli.project import open_bundle
from harnessctl.errors import UsageError
from harnessctl.storage import write_atomic


class Rebuilt(msgspec.Struct, kw_only=True):
    """Where the variant is, and what it is."""

    path: str
    number: int
    digest: str
    parent: str
    operators: dict[str, list[str]]


def rebuild_variant(
    records: Path | None, number: int | None, out: Path | None, *, target: str | None, project: Path | None
) -> Rebuilt:
    """Write the variant `number` of `records` (a file, or the folder of a run) to `out`, or here under its own name.

    The parent is `target` where that is given, else the bundle that the run kept, else the project's harness as it is now.
    BundleError when that is not what was augmented.
    """
    if records is None or number is None:
        raise UsageError("--rebuild RECORDS and --number N go together")
    path = records / RECORDS if records.is_dir() else records
    if not path.is_file():
        raise UsageError(f"no records at {path}", hint="give a run's folder, e.g. runs/latest-augment")
    last: int | None = None
    for variation in read_variations(path):
        if variation.number == number:
            bundle = rebuild(_parent(path.parent, target, project), variation)
            written = out or Path(bundle.file_name)
            write_atomic(written, encode_bundle(bundle))
            return Rebuilt(
                path=str(written),
                number=number,
                digest=bundle.digest,
                parent=variation.parent,
                operators=variation.operators,
            )
        last = variation.number
    hint = f"the last is {last}" if last is not None else "the file holds none"
    raise UsageError(f"{path} has no record of variant {number}", hint=hint)


def _parent(folder: Path, target: str | None, project: Path | None) -> Bundle:
    kept = folder / PARENT
    if target is None and kept.is_file():
        return read_bundle(kept)
    return open_bundle(target, project)[0]
