"""The checks of `doctor`, each a line: good, optional (not there, not needed for all), or missing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

from harnessctl.errors import HarnessctlError

CORE = (
    "typer",
    "rich",
    "hydra-core",
    "omegaconf",
    "pyyaml",
    "rfc8785",
    "ruamel.yaml",
    "jinja2",
    "msgspec",
    "orjson",
    "jsonschema-rs",
    "aiohttp",
)
EXTRAS = {
    "local": ("torch", "transformers", "gguf", "llguidance"),
    "train": ("trl", "accelerate", "peft", "datasets"),
    "mcp": ("mcp",),
}


class CheckResult(msgspec.Struct):
    """One line of the report."""

    name: str
    state: Literal["good", "optional", "missing"]
    detail: str


def diagnose(project: Path | None) -> list[CheckResult]:
    """Every check, in a fixed order; none raises."""
    return [*_python(), *_packages(), *_programs(), *_models(), *_project(project)]


def _python() -> Iterator[CheckResult]:
    good = sys.version_info >= (3, 11)
    yield CheckResult(
        "python", "good" if good else "missing", sys.version.split()[0] + ("" if good else "; 3.11 needed")
    )


def _packages() -> Iterator[CheckResult]:
    absent = [name for name in CORE if _version(name) is None]
    yield CheckResult("core packages", "missing" if absent else "good", ", ".join(absent) or f"all {len(CORE)}")
    for extra, names in EXTRAS.items():
        absent = [name for name in names if _version(name) is None]
        detail = f"pip install 'harnessctl[{extra}]' for {', '.join(absent)}" if absent else _listed(names)
        yield CheckResult(f"extra {extra}", "optional" if absent else "good", detail)


def _programs() -> Iterator[CheckResult]:
    import sqlite3

    fit = sqlite3.sqlite_version_info >= (3, 34)
    yield CheckResult("sqlite", "good" if fit else "missing", sqlite3.sqlite_version + ("" if fit else "; 3.34 needed"))
    found = shutil.which("git")
    yield CheckResult("git", "good" if found else "optional", found or "needed to diff revisions and to evolve")


def _models() -> Iterator[CheckResult]:
    from harnessctl.decode.catalog import list_models

    for model in list_models():
        there = model.state in ("packaged", "pulled")
        yield CheckResult(
            f"model {model.name}",
            "good" if there else "optional",
            model.path if there else f"{model.problem or 'not pulled'}; harnessctl models pull {model.name}",
        )


def _project(project: Path | None) -> Iterator[CheckResult]:
    from harnessctl.cli.project import project_root, validate_all

    try:
        root = project_root(project)
        faults = validate_all(root)
    except HarnessctlError as error:
        yield CheckResult("project", "optional", error.message)
        return
    errors = len(faults.errors)
    detail = f"{root}: {errors} errors, {len(faults.warnings)} warnings"
    yield CheckResult("project", "missing" if errors else "good", detail)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {_version(name)}" for name in names)
