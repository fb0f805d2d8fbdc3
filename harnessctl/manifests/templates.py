"""Project templates: where `init` copies from, and where recipes come from when a project has none of its own."""

from __future__ import annotations

from pathlib import Path

from harnessctl.errors import StorageError, UsageError
from harnessctl.storage import write_atomic

PACKAGE = Path(__file__).resolve().parents[1]


def template_names() -> list[str]:
    """The templates there are, `live-stream` (the shipped example) among them."""
    return sorted({"live-stream", *(p.name for p in (PACKAGE / "templates").glob("*") if p.is_dir())})


def template_root(name: str) -> Path:
    """The folder of a template. In a checkout `live-stream` is the repository itself; in a wheel it is packaged."""
    if name not in template_names():
        raise UsageError(f"no template named {name!r}; there are {', '.join(template_names())}")
    packaged = PACKAGE / "templates" / name
    if (packaged / "manifests").is_dir():
        return packaged
    repository = PACKAGE.parent
    if name == "live-stream" and (repository / "recipes").is_dir() and (repository / "pyproject.toml").is_file():
        return repository
    raise UsageError(f"the template {name!r} is not in this installation", hint="install harnessctl again")


def docs_folder() -> Path:
    """Where the documentation's pages are: the repository's docs/ in a checkout, packaged in a wheel."""
    packaged = PACKAGE / "docs"
    return packaged if packaged.is_dir() else PACKAGE.parent / "docs"


def copy_template(name: str, target: Path) -> list[Path]:
    """Copy a template's manifests/, skills/, recipes/ and its own files into `target`; returns what was written.

    UsageError, with nothing written, when any file is there already.
    """
    source = template_root(name)
    folders = ["manifests", "skills", "recipes"]
    files = [path for folder in folders for path in sorted((source / folder).rglob("*")) if path.is_file()]
    if source.parent.name == "templates":
        files += [path for path in sorted(source.iterdir()) if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    present = [path for path in files if (target / path.relative_to(source)).exists()]
    if present:
        raise UsageError(
            f"{target / present[0].relative_to(source)} exists"
            + (f", and {len(present) - 1} more" if len(present) > 1 else ""),
            hint="init writes into an empty folder; give another DIRECTORY",
        )
    contents = {target / path.relative_to(source): path for path in files}
    written: list[Path] = []
    try:
        for place, path in contents.items():
            write_atomic(place, path.read_bytes())
            written.append(place)
            if path.stat().st_mode & 0o100:
                place.chmod(0o755)
        ignore = target / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, b"build/\nruns/\n__pycache__/\n")
            written.append(ignore)
    except StorageError:  # a project is whole or not there; folders may stay
        for place in written:
            place.unlink(missing_ok=True)
        raise
    return written
