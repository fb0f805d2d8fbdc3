"""Run folders: `runs/<UTC time>-<job>-<name>-<4 hex>/` with config.yaml, run.json, records and a report.

What always holds: config.yaml is written before any work starts; run.json is replaced atomically; `runs/latest-<job>`
points to the newest run of a job there; one process at a time holds a run.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import orjson

from harnessctl.errors import RecordError, StorageError, UsageError
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

        UsageError when `folder` exists and is not empty: a run never writes over another. StorageError when it cannot be
        written.
        """
        runs = root / "runs"
        folder = folder or new_path(root, record.job, record.name)
        check_free(folder)
        record.config = digest_bytes(config_yaml.encode())
        run = cls(folder, record)
        try:
            write_atomic(folder / "config.yaml", config_yaml.encode())
            run.save()
        except StorageError:
            with suppress(OSError):  # leave nothing half-made behind
                (folder / "config.yaml").unlink(missing_ok=True)
                folder.rmdir()
            raise
        if folder.resolve().parent == runs.resolve():
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
            found = document.get("format") if isinstance(document, dict) else None
            if found != FORMAT:
                raise RecordError(f"{path}: format {found!r}; this version reads {FORMAT}")
            return cls(folder.resolve(), msgspec.convert(document, Run))
        except (orjson.JSONDecodeError, msgspec.ValidationError) as error:
            raise RecordError(f"{path}: {error}") from error

    def config_yaml(self) -> str:
        """The config that the run was made with; RecordError when it cannot be read."""
        path = self.path / "config.yaml"
        try:
            return read_bytes(path).decode()
        except UnicodeDecodeError as error:
            raise RecordError(f"{path}: not UTF-8: {error.reason}") from error

    @contextmanager
    def held(self, records: str) -> Generator[Path]:
        """The path of the run's file `records`, which no other process may hold meanwhile. The system lets go of it when
        the process ends, however it ends. UsageError when another process has it."""
        path = self.path / records
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error
        try:
            self._lock(handle)
            yield path
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another process is writing to {self.path}", hint="wait until it has ended") from error
        except OSError:  # a file system that has no locks; runs there are as safe as they were
            return

    def save(self) -> None:
        """Write run.json anew, atomically."""
        try:
            encoded = msgspec.json.encode(self.record)
        except UnicodeEncodeError as error:
            raise StorageError(f"cannot write {self.path / 'run.json'}: a path of the run is not UTF-8 text") from error
        write_atomic(self.path / "run.json", msgspec.json.format(encoded, indent=2) + b"\n")

    def finish(self, status: str) -> None:
        """Record how and when the run ended."""
        self.record = msgspec.structs.replace(self.record, status=status, finished=utc_now())
        self.save()

    def _point_latest(self) -> None:
        link = self.path.parent / f"latest-{self.record.job}"
        if link.exists() and not link.is_symlink():
            return
        temporary = self.path.parent / f".latest-{self.record.job}-{secrets.token_hex(2)}"
        try:
            temporary.symlink_to(self.path.name)
            os.replace(temporary, link)
        except OSError as error:
            raise StorageError(f"cannot write {link}: {error.strerror}") from error


def check_free(folder: Path) -> None:
    """UsageError when `folder` is there and is not empty; StorageError when that cannot be known."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            what = "not empty" if folder.is_dir() else "a file"
            raise UsageError(f"{folder} is {what}", hint="give an empty --run-dir, or --resume it")
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror}") from error


def new_path(root: Path, job: str, name: str) -> Path:
    """Where a run that begins now is kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    shown = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") or "run"
    return root / "runs" / f"{stamp}-{job}-{shown}-{secrets.token_hex(2)}"


def utc_now() -> str:
    """The time as the records write it, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def package_versions() -> dict[str, str]:
    """Versions of harnessctl, Python and the packages that can change a result, where installed."""
    found = {"python": sys.version.split()[0]}
    for name in ("harnessctl", "torch", "transformers", "peft", "trl", "llguidance", "mcp", "jsonschema-rs", "jinja2"):
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
