"""Envelopes: read from `manifests/envelopes/<name>.yaml` of the project, else from the packaged presets.

What always holds: an envelope that is loaded names operators that there are, with settings that they read; where it is
loaded for a harness, every pattern names something of it, every range lies within its limit's, and no skill that gold
needs is singled out for masking. All faults at once, each with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harnessctl.augment.discovery import find_operators, operators_of
from harnessctl.augment.envelope_checks import check_for, check_settings
from harnessctl.augment.operator import Operator
from harnessctl.bundle.files import Bundle
from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.load import Document
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.manifests.standalone import read_manifest, shown
from harnessctl.manifests.templates import template_root
from harnessctl.manifests.violations import did_you_mean

FOLDER = "manifests/envelopes"


def envelope_folders(root: Path | None) -> list[Path]:
    """Where envelopes are looked for, first come first: the project's, then the packaged presets."""
    folders = [root / FOLDER] if root is not None and (root / FOLDER).is_dir() else []
    packaged = template_root("live-stream") / FOLDER
    return folders + ([packaged] if packaged.resolve() not in [folder.resolve() for folder in folders] else [])


def envelope_names(root: Path | None) -> list[str]:
    """The envelopes there are, sorted."""
    return sorted({path.stem for folder in envelope_folders(root) for path in folder.glob("*.yaml")})


def load_envelope(
    root: Path | None,
    name: str,
    bundle: Bundle | None = None,
    *,
    gold_skills: Mapping[str, Sequence[str]] | None = None,
    operators: Mapping[str, Operator] | None = None,
) -> Envelope:
    """The envelope `name`, checked; for `bundle`, its targets and limits too, and against `gold_skills` (skill to the
    families whose gold loads it).

    UsageError when there is none of the name; FaultsError holds everything that is wrong with it.
    """
    path = next((f / f"{name}.yaml" for f in envelope_folders(root) if (f / f"{name}.yaml").is_file()), None)
    if path is None:
        known = envelope_names(root)
        raise UsageError(
            f"no envelope {name!r}; there are {', '.join(known) or 'none'}",
            hint=did_you_mean(name, known) or f"envelopes live in {FOLDER}/",
        )
    faults = Faults()
    known_operators = find_operators(root) if operators is None else operators
    read = _read(path, root, known_operators, faults)
    faults.raise_if_errors()
    assert read is not None
    document, envelope = read
    if bundle is not None:
        check_for(bundle, document, envelope, known_operators, gold_skills or {}, faults)
        faults.raise_if_errors()
    return envelope


def check_envelopes(root: Path) -> Faults:
    """What is wrong with the project's own envelopes and operators, whatever the harness."""
    faults = Faults()
    if not (root / FOLDER).is_dir() and not (root / "manifests" / "operators").is_dir():
        return faults
    known = operators_of(root, faults)
    for path in sorted((root / FOLDER).glob("*.yaml")):
        _read(path, root, known, faults)
    return faults


def _read(
    path: Path, root: Path | None, operators: Mapping[str, Operator], faults: Faults
) -> tuple[Document, Envelope] | None:
    """The envelope in a file, checked as far as that goes without a harness; None when it is not one."""
    read = read_manifest(path, "Envelope", Envelope, faults, name=shown(path, root), misnamed="envelope-name")
    if read is None:
        return None
    document, envelope = read
    check_settings(document, envelope, operators, faults)
    return document, envelope
