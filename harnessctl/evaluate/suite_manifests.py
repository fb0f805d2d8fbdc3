"""Suite manifests: `manifests/suites/<name>.yaml` of the project, else the packaged ones; and what they settle in a config.

What always holds: what the command gives is taken, what it leaves null is the suite's; a set of items without a manifest is
a suite by its own name, with the paper's sampling.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import Faults, UsageError
from harnessctl.evaluate.gate import METRICS
from harnessctl.evaluate.sets import item_sets
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.specs.suite import Suite
from harnessctl.manifests.standalone import read_manifest, shown
from harnessctl.manifests.templates import template_root
from harnessctl.manifests.violations import did_you_mean

FOLDER = "manifests/suites"


def suite_manifest(root: Path | None, name: str) -> Suite:
    """The suite `name`. UsageError where there is none, FaultsError with all that is wrong with its file."""
    path = _files(root).get(name)
    if path is None:
        if name in item_sets():
            return Suite(api_version="harnessctl/v1", kind="Suite", name=name, set=name)
        known = suite_names(root)
        raise UsageError(f"no suite {name!r}", hint=did_you_mean(name, known) or f"suites: {', '.join(known)}")
    faults = Faults()
    suite = _read(path, root, faults)
    faults.raise_if_errors()
    assert suite is not None
    return suite


def suite_names(root: Path | None) -> list[str]:
    """All suites, sorted: those with a manifest, and sets of items without one."""
    return sorted({*_files(root), *item_sets()})


def check_suites(root: Path) -> Faults:
    """What is wrong with the project's own suites."""
    faults = Faults()
    for path in sorted((root / FOLDER).glob("*.yaml")):
        _read(path, root, faults)
    return faults


def settled(config: dict[str, Any], suite: Suite) -> dict[str, Any]:
    """A resolved config of the job `eval`, what is null in it taken from the suite."""
    taken = dict(config)
    taken["set"] = suite.set if config.get("set") is None else config["set"]
    for name in ("n", "repeats", "metrics"):
        if taken.get(name) is None:
            taken[name] = getattr(suite, name)
    for group in ("sampling", "limits"):
        own = msgspec.structs.asdict(getattr(suite, group))
        given: dict[str, Any] = taken.get(group) or {}
        taken[group] = {name: own.get(name) if given.get(name) is None else given[name] for name in own | given}
    return taken


def _read(path: Path, root: Path | None, faults: Faults) -> Suite | None:
    read = read_manifest(path, "Suite", Suite, faults, name=shown(path, root), misnamed="suite-name")
    if read is None:
        return None
    document, suite = read
    if suite.set not in item_sets():
        known = sorted(item_sets())
        faults.add(
            document.fault(
                "suite-set",
                "there is no such set of items",
                "set",
                got=suite.set,
                allowed=", ".join(known),
                hint=did_you_mean(suite.set, known),
            )
        )
    known = [*METRICS, "coverage"]
    for number, name in enumerate(suite.metrics):
        _check_metric(document, ("metrics", number), name, [*METRICS], faults)
    for name in suite.gate.least if suite.gate is not None else ():
        _check_metric(document, ("gate", "least", name), name, known, faults)
    return suite


def _check_metric(document: Document, place: tuple[PathPart, ...], name: str, known: list[str], faults: Faults) -> None:
    if name not in known:
        allowed, hint = ", ".join(known), did_you_mean(name, known)
        faults.add(
            document.fault("suite-metric", "there is no such mean", *place, got=name, allowed=allowed, hint=hint)
        )


def _files(root: Path | None) -> dict[str, Path]:
    """The files by their suite's name; the project's own hide the packaged ones."""
    folders = [template_root("live-stream") / FOLDER] + ([] if root is None else [root / FOLDER])
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
