"""An installed wheel works outside the repository: it carries the example, the recipes and the pages."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The wheel's content, laid out as an installation would."""
    made = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), str(repository)],
        check=True,
        capture_output=True,
    )
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        models = sum(file.compress_size for file in archive.infolist() if "/models/" in file.filename)
        assert 1_000_000 < models < 15_000_000 and wheel.stat().st_size - models < 3_000_000
        archive.extractall(made / "site")
    return made / "site"


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "harnessctl", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_it_is_the_wheel_that_runs(installed: Path, tmp_path: Path):
    shown = subprocess.run(
        [sys.executable, "-c", "import harnessctl; print(harnessctl.__file__)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert shown.stdout.startswith(str(installed))


@pytest.mark.parametrize("template", ["minimal", "live-stream"])
def test_a_project_of_each_template_compiles(installed: Path, tmp_path: Path, template: str):
    assert run(installed, tmp_path, "init", "p", "--template", template).returncode == 0
    for arguments in (["validate"], ["compile"], ["compile", "--locked"]):
        done = run(installed, tmp_path / "p", *arguments)
        assert done.returncode == 0, done.stderr


def test_the_shipped_host_has_one_digest_wherever_it_lies(installed: Path, tmp_path: Path, repository: Path):
    run(installed, tmp_path, "init", "p", "--template", "live-stream")
    done = run(installed, tmp_path / "p", "compile", "--json")
    locked = (repository / "harness.lock").read_text()
    import json

    for bundle in json.loads(done.stdout)["bundles"]:
        assert bundle["digest"] in locked


def test_comments_are_answered_and_pages_shown(installed: Path, tmp_path: Path):
    run(installed, tmp_path, "init", "p")
    done = run(installed, tmp_path / "p", "run", "-i", "comments.jsonl", "policy=scripted", "script=script.jsonl")
    assert done.returncode == 0, done.stderr
    assert "The teapot is 89 yuan." in done.stdout
    assert "quickstart" in run(installed, tmp_path, "docs").stdout
    assert run(installed, tmp_path, "docs", "hooks").stdout.startswith("# Hooks")
