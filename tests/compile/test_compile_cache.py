"""The incremental cache: fast where nothing changed, never wrong where anything did."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project, fresh, validate_project
from harnessctl.errors import FaultsError

Shop = Callable[..., Path]
INDEX = "build/.cache/compile.json"
UNITS = "build/.cache/units.json"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def from_nothing(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest that a project without any cache gives."""
    there = tmp_path_factory.mktemp("fresh") / "p"
    shutil.copytree(root, there, ignore=shutil.ignore_patterns("build", "harness.lock"), symlinks=True)
    return compile_project(there).bundle().digest


def test_unchanged_sources_are_answered_without_reading_them(shop: Shop) -> None:
    root = shop()
    first = compile_project(root)
    second = compile_project(root)
    assert (first.fresh, second.fresh) == (False, True)
    assert [b.unchanged for b in second.bundles] == [True]
    assert second.bundles[0].digest == first.bundles[0].digest and second.path() == first.path()


def test_unchanged_sources_are_answered_without_a_parser(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    code = (
        "import sys, pathlib\n"
        "from harnessctl.compile import compile_project, validate_project\n"
        f"result = compile_project(pathlib.Path({str(root)!r}))\n"
        f"validate_project(pathlib.Path({str(root)!r}))\n"
        "assert result.fresh\n"
        "heavy = {'yaml', 'jinja2', 'jsonschema_rs', 'msgspec', 'rfc8785', 'ruamel'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


def test_one_changed_skill_leaves_templates_alone(shop: Shop) -> None:
    root = shop({"manifests/harness.yaml": ("reply:\n  route: {private_when: \"'address' in message\"}\n", "")})
    compile_project(root)
    edit(root / "skills/upsell/SKILL.md", "one more", "two more")
    code = (
        "import sys, pathlib\n"
        "from harnessctl.compile import compile_project\n"
        f"result = compile_project(pathlib.Path({str(root)!r}))\n"
        "assert not result.fresh and not result.bundles[0].unchanged\n"
        "heavy = {'jinja2', 'jsonschema_rs', 'ruamel'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


CHANGES: dict[str, Callable[[Path], object]] = {
    "a skill": lambda root: edit(root / "skills/upsell/SKILL.md", "one more", "two more"),
    "a tool": lambda root: edit(root / "manifests/tools/catalog.yaml", "minimum: 1", "minimum: 2"),
    "a limit": lambda root: edit(root / "manifests/harness.yaml", "value: 80", "value: 81"),
    "a name": lambda root: [
        edit(root / "manifests/tools/catalog.yaml", "name: search_faq", "name: find_answer"),
        edit(root / "skills/item-qa/SKILL.md", "search_faq", "find_answer"),
    ],
    "code that is imported": lambda root: edit(root / "prices.py", "return 5", "return 6"),
    "a file that comes first": lambda root: (root / "manifests/tools/prices.py").write_text(
        "def price(n):\n    return 7\n"
    ),
    "a new skill": lambda root: [
        (root / "skills/more").mkdir(),
        (root / "skills/more/SKILL.md").write_text("---\nname: more\ndescription: More.\n---\nMore.\n"),
        edit(root / "manifests/harness.yaml", "[item-qa, upsell]", "['*']"),
    ],
    "a skill less": lambda root: [
        shutil.rmtree(root / "skills/upsell"),
        edit(root / "manifests/harness.yaml", "[item-qa, upsell]", "[item-qa]"),
    ],
    "examples less": lambda root: (root / "skills/item-qa/examples.yaml").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_project_gives_what_it_gives_without_a_cache(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, change: Callable[[Path], object]
) -> None:
    root = shop()
    before = compile_project(root).bundle().digest
    change(root)
    after = compile_project(root)
    assert not after.fresh and after.bundle().digest != before
    assert after.bundle().digest == from_nothing(root, tmp_path_factory)


def test_an_edit_of_the_same_size_with_the_old_time_is_seen(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    path = root / "skills/upsell/SKILL.md"
    before = path.stat()
    edit(path, "one more", "two more")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not compile_project(root).fresh


def test_a_touched_file_is_compared_by_content(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    os.utime(root / "skills/upsell/SKILL.md")
    assert compile_project(root).fresh


def test_old_enough_files_are_not_even_opened(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shop()
    compile_project(root)
    index = fresh.read_checked(root / INDEX)
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    fresh.write_index(root, index, later)
    for path in ("skills/upsell/SKILL.md", "manifests/harness.yaml"):
        (root / path).chmod(0o000)
        index["files"][path] = fresh.stat_of(root / path, index["files"][path][-1])
    fresh.write_index(root, index, later)
    read: list[Path] = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self), original(self))[1])
    assert compile_project(root).fresh
    assert [path.name for path in read] == ["compile.json"]


@pytest.mark.parametrize("name", [INDEX, UNITS])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-20],
        lambda data: data.replace(b"two", b"six") + b" ",
        lambda data: b"{}",
        lambda data: data[:70] + b"x" + data[71:],
        lambda data: os.urandom(300),
    ],
)
def test_a_damaged_cache_is_no_cache(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, name: str, damage: Callable[[bytes], bytes]
) -> None:
    root = shop()
    compile_project(root)
    (root / name).write_bytes(damage((root / name).read_bytes()))
    edit(root / "skills/upsell/SKILL.md", "one more", "two more")
    assert compile_project(root).bundle().digest == from_nothing(root, tmp_path_factory)


def test_a_cache_of_another_version_is_no_cache(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    root = shop()
    compile_project(root)
    monkeypatch.setattr(fresh, "__version__", "9.9.9")
    assert not compile_project(root).fresh


@pytest.mark.parametrize("path", ["harness.lock", "build/*.bundle.json"])
@pytest.mark.parametrize("how", ["gone", "altered"])
def test_outputs_are_made_again_when_they_are_not_as_written(shop: Shop, path: str, how: str) -> None:
    root = shop()
    compile_project(root)
    (file,) = root.glob(path)
    good = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(good.replace(b"shop", b"ship"))
    result = compile_project(root)
    assert not result.fresh and file.read_bytes() == good
    read_bundle(result.path())


def test_a_program_that_loses_its_first_line_is_seen(shop: Shop) -> None:
    command = "{all: [{max_chars: {limit: reply_max_chars}}, {command: {run: [g/x.sh], files: [g/x.sh]}}]}"
    root = shop(
        {"manifests/hooks/guards.yaml": ("{max_chars: {limit: reply_max_chars}}", command), "g/x.sh": "#!/bin/sh\n"}
    )
    compile_project(root)
    (root / "g/x.sh").write_text("exit 0\n")
    assert [fault.code for fault in validate_project(root).items] == ["command-not-executable"]
    (root / "g/x.sh").unlink()
    assert [fault.code for fault in validate_project(root).items] == ["command-missing"]


def test_faults_are_found_again_each_time(shop: Shop) -> None:
    root = shop({"skills/upsell/SKILL.md": ("Offer one more.", "Call get_product.")})
    for _ in range(2):
        with pytest.raises(FaultsError) as error:
            compile_project(root)
        assert [fault.code for fault in error.value.faults] == ["ref-bare"]


def test_warnings_are_given_again_each_time(shop: Shop) -> None:
    root = shop({"skills/item-qa/SKILL.md": ("at most 80", "at most 90")})
    assert [w.code for w in compile_project(root).warnings] == ["limit-differs"]
    again = compile_project(root)
    assert again.fresh and [w.code for w in again.warnings] == ["limit-differs"]
    assert [w.code for w in validate_project(root).items] == ["limit-differs"]


def test_a_build_folder_that_cannot_be_written_is_an_error_of_the_bundle_alone(shop: Shop) -> None:
    root = shop()
    (root / "build").mkdir()
    (root / "build/.cache").write_text("a file where the folder should be")
    assert compile_project(root).bundle().path.exists()
    assert not compile_project(root).fresh


def test_the_cache_holds_only_what_is_used(shop: Shop) -> None:
    root = shop()
    for n in range(3):
        edit(root / "manifests/tools/catalog.yaml", f"refuse{n - 1 if n else ''}\n", f"refuse{n}\n")
        compile_project(root)
    units = orjson.loads((root / UNITS).read_bytes().split(b"\n", 1)[1])["units"]
    assert all(len(unit["bound"]) <= 1 for unit in units.values())


def test_a_file_that_a_command_would_have_to_carry_is_seen_when_it_appears(shop: Shop) -> None:
    command = "{all: [{max_chars: {limit: reply_max_chars}}, {command: {run: [sh, -c, exit 0, words/list]}}]}"
    root = shop({"manifests/hooks/guards.yaml": ("{max_chars: {limit: reply_max_chars}}", command)})
    compile_project(root)
    assert compile_project(root).fresh
    (root / "words").mkdir()
    (root / "words/list").write_text("")
    assert [fault.code for fault in validate_project(root).items] == ["command-not-embedded"]


def test_a_table_that_goes_is_seen_and_one_that_changes_does_not_matter(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    table = root / "manifests/worlds/stall/faq.csv"
    table.write_text("id,question,answer\n2,Where?,Here\n")
    assert compile_project(root).fresh
    table.unlink()
    assert [fault.code for fault in validate_project(root).items] == ["world-file"]
