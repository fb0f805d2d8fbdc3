"""Run folders: `runs/<UTC time>-<job>-<name>-<4 hex>/` with config.yaml, run.json, records and a report.

What always holds: config.yaml is written before any work starts; run.json is replaced atomically; `runs/latest-<job>`
points to the newest run of a job.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import orjson

from harnessctl.errors import RecordError, UsageError
from harnessctl.records.run import FORMAT, Run
from harnessctl.storage import digest_bytes, read_bytes, write_atomic


class RunFolder:
    """One run's folder and its record, kept in step."""

    def __init__(self, path: Path, record: Run) -> None:
        self.path = path
        self.record = record

    @classmethod
    def create(cls, root: Path, record: Run, config_yaml: str, *, folder: Path | None = None) -> RunFolder:
        """Make the folder (under `root`/runs unless `folder` says otherwise), write config.yaml and run.json.

        UsageError when `folder` exists and is not empty: a run never writes over another.
        """
        if folder is None:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            name = re.sub(r"[^A-Za-z0-9.]+", "-", record.name).strip("-") or "run"
            folder = root / "runs" / f"{stamp}-{record.job}-{name}-{secrets.token_hex(2)}"
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", hint="give an empty --run-dir, or --resume it")
        record.config = digest_bytes(config_yaml.encode())
        run = cls(folder, record)
        write_atomic(folder / "config.yaml", config_yaml.encode())
        run.save()
        run._point_latest()
        return run

    @classmethod
    def open(cls, folder: Path) -> RunFolder:
        """The run in `folder`; RecordError when there is none or its format is unknown."""
        path = folder / "run.json"
        if not path.is_file():
            raise RecordError(f"{folder}: no run.json there", hint="give a folder under runs/, e.g. runs/latest-run")
        try:
            document = orjson.loads(read_bytes(path))
            if document.get("format") != FORMAT:
                raise RecordError(f"{path}: format {document.get('format')!r}; this version reads {FORMAT}")
            return cls(folder.resolve(), msgspec.convert(document, Run))
        except (orjson.JSONDecodeError, msgspec.ValidationError) as error:
            raise RecordError(f"{path}: {error}") from error

    def save(self) -> None:
        """Write run.json anew, atomically."""
        write_atomic(self.path / "run.json", msgspec.json.format(msgspec.json.encode(self.record), indent=2) + b"\n")

    def finish(self, status: str) -> None:
        """Record how and when the run ended."""
        self.record = msgspec.structs.replace(self.record, status=status, finished=utc_now())
        self.save()

    def _point_latest(self) -> None:
        link = self.path.parent / f"latest-{self.record.job}"
        if link.exists() and not link.is_symlink():
            return
        temporary = self.path.parent / f".latest-{self.record.job}-{secrets.token_hex(2)}"
        temporary.symlink_to(self.path.name)
        os.replace(temporary, link)


def utc_now() -> str:
    """The time as the records write it, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def package_versions() -> dict[str, str]:
    """Versions of harnessctl, Python and the packages that can change a result, where installed."""
    found = {"python": sys.version.split()[0]}
    for name in ("harnessctl", "torch", "transformers", "llguidance", "mcp", "jsonschema-rs", "jinja2"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_commit(root: Path) -> str | None:
    """The project's revision (12 hex), with `+` when tracked files differ from it; None outside git."""
    try:
        head = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10
        )
        dirty = subprocess.run(
            ["git", "-C", str(root), "diff", "--quiet", "HEAD"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if head.returncode:
        return None
    return head.stdout.strip() + ("+" if dirty.returncode else "")
