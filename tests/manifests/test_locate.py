"""Finding a project and its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.locate import find_root, find_sources

Write = Callable[[Mapping[str, str | bytes]], Path]


def test_the_root_is_found_from_any_folder_below(project: Write) -> None:
    root = project({"manifests/harness.yaml": "", "skills/a/SKILL.md": "", "deep/er/x": ""})
    assert find_root(start=root / "deep/er") == root.resolve()
    assert find_root(root) == root.resolve()


def test_a_lock_alone_marks_a_root(project: Write) -> None:
    root = project({"inner/harness.lock": "{}", "manifests/harness.yaml": ""})
    assert find_root(start=root / "inner") == (root / "inner").resolve()


def test_no_project_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no project at") as error:
        find_root(start=tmp_path)
    assert "harnessctl init" in error.value.hint
    with pytest.raises(UsageError, match="is not a project"):
        find_root(tmp_path)
    with pytest.raises(UsageError, match="no folder at"):
        find_root(tmp_path / "missing")


def test_sources_have_the_kind_of_their_place(project: Write) -> None:
    root = project(
        {
            "manifests/harness.yaml": "",
            "manifests/judges/live.yaml": "",
            "manifests/tools/shop.yaml": "",
            "manifests/tools/shop.py": "",
            "manifests/hooks/a.yaml": "",
            "manifests/prompts/p.yaml": "",
            "manifests/worlds/w.yaml": "",
            "manifests/worlds/w/table.csv": "",
            "manifests/suites/s.yaml": "",
            "manifests/.hidden.yaml": "",
            "skills/item-qa/SKILL.md": "",
            "skills/item-qa/examples.yaml": "",
            "skills/.git/x": "",
        }
    )
    faults = Faults()
    found = find_sources(root, faults)
    assert faults.items == []
    assert [(s.path, s.kind, s.name) for s in found.sources] == [
        ("manifests/harness.yaml", "Harness", "harness"),
        ("manifests/hooks/a.yaml", "Hooks", "a"),
        ("manifests/judges/live.yaml", "Harness", "judges/live"),
        ("manifests/prompts/p.yaml", "PromptPipeline", "p"),
        ("manifests/tools/shop.yaml", "Tools", "shop"),
        ("manifests/worlds/w.yaml", "World", "w"),
        ("skills/item-qa/SKILL.md", "Skill", "item-qa"),
        ("skills/item-qa/examples.yaml", "Examples", "item-qa"),
    ]


def test_files_that_would_silently_not_be_read_are_faults(project: Write) -> None:
    root = project(
        {"manifests/tools/a.yml": "", "manifests/tools/deep/b.yaml": "", "skills/x/skill.md": "", "skills/y/n": ""}
    )
    faults = Faults()
    find_sources(root, faults)
    assert [fault.render() for fault in sorted(faults.items)] == [
        "manifests/tools/a.yml: error[source-place]: a manifest is not read because of its ending; got .yml; allowed .yaml\n"
        "    hint: rename it to manifests/tools/a.yaml",
        "manifests/tools/deep/b.yaml: error[source-place]: the file is too deep to be found; got manifests/tools/deep/b.yaml; "
        "allowed manifests/tools/<name>.yaml\n    hint: move it to manifests/tools/",
        "skills/x: error[skill-missing]: the folder of a skill has no SKILL.md; got skill.md; allowed SKILL.md\n"
        "    hint: rename skill.md to SKILL.md",
        "skills/y: error[skill-missing]: the folder of a skill has no SKILL.md; allowed SKILL.md\n"
        "    hint: add it, or move the folder out of skills/",
    ]


def test_links_may_not_leave_the_project(project: Write, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = project({"manifests/harness.yaml": "", "shared/SKILL.md": "", "skills/in/n": ""})
    outside = tmp_path_factory.mktemp("outside")
    (outside / "SKILL.md").write_text("secret")
    (root / "skills/in/SKILL.md").symlink_to(root / "shared/SKILL.md")
    (root / "skills/out").symlink_to(outside)
    (root / "skills/gone").symlink_to(root / "nowhere")
    (root / "manifests/self.yaml").symlink_to(root / "manifests/self.yaml")
    (root / "manifests/tools").mkdir()
    (root / "manifests/tools/loop").symlink_to(root / "manifests")
    faults = Faults()
    found = find_sources(root.resolve(), faults)
    assert "skills/in/SKILL.md" in [source.path for source in found.sources]
    codes = {(fault.path, fault.code) for fault in faults.items}
    assert ("skills/out", "source-outside") in codes and ("skills/gone", "source-unreadable") in codes
    assert ("manifests/tools/loop", "source-place") in codes and ("manifests/self.yaml", "source-unreadable") in codes
