from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from harnessctl.cli.main import main


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_help_names_every_command_and_imports_nothing_heavy():
    code = (
        "import sys; from harnessctl.cli.main import main; code = main(['--help']);"
        "heavy = {'torch', 'hydra', 'omegaconf', 'jinja2', 'yaml', 'ruamel', 'aiohttp', 'jsonschema_rs', 'transformers'};"
        "sys.exit(code or str(sorted(heavy & set(sys.modules))).strip('[]') or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("init", "validate", "compile", "diff", "show", "render", "verify", "run", "view", "schema", "doctor"):
        assert f"  {name} " in done.stdout


def test_a_new_project_validates_compiles_and_verifies(harnessctl, shop):
    assert harnessctl("validate", cwd=shop).code == 0
    compiled = harnessctl("compile", "--json", cwd=shop)
    assert compiled.code == 0
    (bundle,) = compiled.json["bundles"]
    assert harnessctl("verify", bundle["path"]).code == 0
    assert harnessctl("compile", "--locked", cwd=shop).code == 0
    assert harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["unchanged"] is True


def test_init_overwrites_nothing(harnessctl, shop):
    before = (shop / "manifests" / "harness.yaml").read_text()
    again = harnessctl("init", str(shop))
    assert again.code == 2
    assert "exists" in again.err
    assert (shop / "manifests" / "harness.yaml").read_text() == before


def test_locked_fails_when_a_rule_changed_and_writes_nothing(harnessctl, shop):
    harnessctl("compile", cwd=shop)
    lock = (shop / "harness.lock").read_bytes()
    edit(shop / "skills/answer-question/SKILL.md", "The customer wants the fact first.", "Be brief.")
    locked = harnessctl("compile", "--locked", cwd=shop)
    assert locked.code == 1
    assert "harness.lock" in locked.err
    assert (shop / "harness.lock").read_bytes() == lock


def test_every_fault_is_shown_with_its_place_in_one_go(harnessctl, shop):
    edit(shop / "skills/answer-question/SKILL.md", "`get_price`", "get_price")
    edit(shop / "manifests/hooks/shop.yaml", "answer-question#lookup", "answer-question#lokup")
    edit(shop / "manifests/harness.yaml", "require_skill: reply", "require_skil: reply")
    found = harnessctl("validate", cwd=shop)
    assert found.code == 1
    assert "skills/answer-question/SKILL.md:10:8: error[" in found.err
    assert "manifests/hooks/shop.yaml" in found.err
    assert "manifests/harness.yaml:13:1: error[" in found.err
    assert "require_skill" in found.err
    listed = harnessctl("validate", "--json", cwd=shop)
    assert listed.code == 1
    assert listed.json["errors"] >= 2
    assert {"path", "line", "col", "code", "message", "hint"} <= listed.json["faults"][0].keys()


def test_sarif_is_written_beside_the_text(harnessctl, shop, tmp_path):
    edit(shop / "skills/answer-question/SKILL.md", "`get_price`", "get_price")
    assert harnessctl("validate", "--sarif", str(tmp_path / "f.sarif"), cwd=shop).code == 1
    document = orjson.loads((tmp_path / "f.sarif").read_bytes())
    assert document["version"] == "2.1.0"
    place = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "skills/answer-question/SKILL.md"
    assert place["region"]["startLine"] == 10


def test_diff_of_a_bundle_with_itself_is_empty(harnessctl, shop):
    path = harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["path"]
    same = harnessctl("diff", path, path, "--exit-code")
    assert (same.code, same.out) == (0, "")


def test_diff_says_what_changed(harnessctl, shop):
    path = harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["path"]
    edit(shop / "manifests/harness.yaml", "{value: 200,", "{value: 120,")
    changed = harnessctl("diff", path, cwd=shop)
    assert changed.code == 0
    assert "reply_max_chars" in changed.out
    assert "200" in changed.out
    assert "120" in changed.out
    assert harnessctl("diff", path, "--exit-code", cwd=shop).code == 1
    assert harnessctl("diff", path, "--json", cwd=shop).json


def test_diff_reads_git_revisions(harnessctl, shop):
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c"}
    environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c"}
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=shop, check=True, env=environment)
    assert harnessctl("diff", "HEAD", "--exit-code", cwd=shop).code == 0
    edit(shop / "skills/answer-question/SKILL.md", "The customer wants the fact first.", "Be brief.")
    assert "answer-question" in harnessctl("diff", "HEAD", cwd=shop).out
    wrong = harnessctl("diff", "no-such-revision", cwd=shop)
    assert wrong.code in (1, 2)
    assert "no-such-revision" in wrong.err


def test_verify_catches_a_flipped_byte(harnessctl, shop):
    path = Path(harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["path"])
    content = bytearray(path.read_bytes())
    content[content.index(b"customers")] ^= 1
    path.write_bytes(content)
    broken = harnessctl("verify", str(path))
    assert broken.code == 1
    assert "digest" in broken.err


def test_show_lists_the_inventory_and_reconciles_versions(harnessctl, shop):
    path = harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["path"]
    shown = harnessctl("show", path, "--inventory", "--project", str(shop))
    assert shown.code == 0
    assert "answer-question" in shown.out
    assert "get_price" in shown.out
    edit(shop / "skills/answer-question/SKILL.md", '"0.1.0"', '"0.2.0"')
    stale = harnessctl("show", path, "--inventory", "--project", str(shop))
    assert stale.code == 1
    assert "0.2.0" in stale.err


def test_render_prints_the_exact_prompt(harnessctl, shop):
    shown = harnessctl("render", "--text", "{{ 7 * 7 }} <|im_start|>", cwd=shop)
    assert shown.code == 0
    assert "You answer customers" in shown.out
    assert "{{ 7 * 7 }} < |im_start|>" in shown.out
    assert "get_price" in shown.out
    as_json = harnessctl("render", "--text", "hi", "--json", cwd=shop)
    assert as_json.json["messages"][-1]["content"].endswith("hi")


def test_schema_lists_kinds_and_prints_each(harnessctl, tmp_path):
    kinds = harnessctl("schema").out.split()
    assert {"Skill", "Tools", "Hooks", "PromptPipeline", "Harness", "World", "CommentInput", "Trajectory"} <= set(kinds)
    for kind in kinds:
        assert harnessctl("schema", kind).json["$schema"].endswith("2020-12/schema")
    assert harnessctl("schema", "--all", str(tmp_path)).code == 0
    assert len(list(tmp_path.glob("*.json"))) == len(kinds)
    assert harnessctl("schema", "Tolls").code == 2


@pytest.mark.parametrize("kind", ["skill", "hook", "tool", "recipe", "operator"])
def test_what_new_writes_is_valid(harnessctl, shop, kind):
    name = "fetch_it" if kind == "tool" else "fetch-it"
    made = harnessctl("new", kind, name, cwd=shop)
    assert made.code == 0
    assert harnessctl("validate", cwd=shop).code == 0
    assert harnessctl("compile", cwd=shop).code == 0
    assert harnessctl("new", kind, name, cwd=shop).code == 2
    assert harnessctl("new", kind, "../x", cwd=shop).code == 2


def test_outside_a_project_the_hint_is_init(harnessctl, tmp_path):
    nowhere = harnessctl("validate", cwd=tmp_path)
    assert nowhere.code == 2
    assert "harnessctl init" in nowhere.err


def test_an_unknown_command_is_a_usage_error(harnessctl):
    assert harnessctl("complie").code == 2


def test_docs_lists_and_prints_pages(harnessctl):
    assert "manifests" in harnessctl("docs").out
    assert harnessctl("docs", "manifests").out.startswith("# Manifests")
    assert "did you mean manifests" in harnessctl("docs", "manifest").err


def test_doctor_reports(harnessctl, shop):
    report = harnessctl("doctor", "--json", cwd=shop)
    assert report.code == 0
    assert {"python", "core packages", "project"} <= {check["name"] for check in report.json}


def test_errors_are_json_when_asked(harnessctl, tmp_path):
    wrong = harnessctl("compile", "--json", cwd=tmp_path)
    assert wrong.code == 2
    assert "no project" in wrong.json["error"]


def test_no_command_shows_a_traceback_for_a_file_that_is_not_there():
    assert main(["verify", "/no/such/file"]) == 1
