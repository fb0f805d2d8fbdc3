"""Roles: who may teach and who may judge, told at the line and column where it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_project import FILES

from harnessctl.cli.main import main
from harnessctl.cli.project import validate_all
from harnessctl.errors import FaultsError, UsageError
from harnessctl.evaluate.judging.roles import check_policy, check_roles, judge_role, load_roles

HEAD = """apiVersion: harnessctl/v1
kind: Roles
models:
  pro: {name: Maker-V4-pro}
  flash: {name: Maker-V4-flash}
  glm: {name: GLM}
  max: {name: Max}
  alias: {name: maker-v4-PRO, base_url: "http://127.0.0.1:1/v1"}
  served: {name: default, weights: GLM}
roles:
"""


def faults(root: Path, body: str) -> list[str]:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests" / "roles.yaml").write_text(HEAD + body)
    return [fault.render().splitlines()[0] for fault in check_roles(root).items]


def test_the_papers_roles_are_separate(tmp_path: Path):
    assert (
        faults(
            tmp_path,
            """  teacher: {model: pro}
  rejection: {models: [pro], judge: j}
  reward: {models: [flash], judge: j}
  panel: {models: [pro, glm, max], judge: j}
""",
        )
        == []
    )


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ("  panel: {models: [pro, glm], judge: j}\n", "11:19", "roles-even]: an even number of voters"),
        ("  panel: {models: [pro, glm, nobody], judge: j}\n", "11:30", "roles-model]: no model of this name"),
        ("  teacher: {model: prp}\n", "11:20", "roles-model]"),
        ("  panel: {models: [pro, glm, pro], judge: j}\n", "11:30", "roles-twice]: two voters are one model"),
        ("  panel: {models: [pro, glm, alias], judge: j}\n", "11:30", "roles-twice]: two voters are one model, whose mistakes would count twice; got alias, which is pro: maker-v4-pro"),
        ("  panel: {models: [glm, served, pro], judge: j}\n", "11:25", "roles-twice]"),
        ("  reward: {models: [pro], judge: j}\n  panel: {models: [pro, glm, max], judge: j}\n", "11:21", "roles-overlap]"),
        ("  reward: {models: [alias], judge: j}\n  panel: {models: [glm, max, pro], judge: j}\n", "11:21", "got alias, which is pro of the panel"),
        ("  reward: {models: [flash, served, max], judge: j}\n  panel: {models: [glm], judge: j}\n", "11:28", "got served, which is glm of the panel: glm"),
        ("  teacher: {model: pro}\n  panel: {models: [pro], judge: j}\n", "12:19", "roles-teacher]: the teacher alone decides the panel"),
        ("  teacher: {model: alias}\n  panel: {models: [pro], judge: j}\n", "12:19", "1 of 1 voters are alias"),
        ("  panel: {models: [], judge: j}\n", "11:19", "schema-"),
        ("  panel: {models: [pro], judge: j, sees: all}\n", "11:42", "schema-"),
        ("  jury: {models: [pro], judge: j}\n", "11:3", "schema-"),
    ],
)  # fmt: skip
def test_what_is_not_separate_is_told_at_its_place(tmp_path: Path, body: str, place: str, words: str):
    found = faults(tmp_path, body)
    assert any(fault.startswith(f"manifests/roles.yaml:{place}: error[") and words in fault for fault in found), found
    with pytest.raises(FaultsError):
        load_roles(tmp_path)


def test_all_faults_at_once(tmp_path: Path):
    found = faults(
        tmp_path,
        "  teacher: {model: x}\n  reward: {models: [pro, glm], judge: j}\n  panel: {models: [pro, alias, max], judge: j}\n",
    )
    assert [fault.split("[")[1].split("]")[0] for fault in sorted(found)] == [
        "roles-model",
        "roles-even",
        "roles-overlap",
        "roles-twice",
    ]


@pytest.mark.parametrize(
    ("text", "code"), [("", "manifest-empty"), ("- a\n", "manifest-empty"), ("a: [\n", "yaml-bracket")]
)
def test_a_file_that_is_none(tmp_path: Path, text: str, code: str):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "roles.yaml").write_text(text)
    assert [fault.code for fault in check_roles(tmp_path).items] == [code]


def test_no_model_grades_itself(root: Path):
    roles = load_roles(root)
    with pytest.raises(UsageError, match=r"MODEL-B is b of manifests/roles\.yaml, a voter of the panel"):
        check_policy(roles, "panel", "MODEL-B")
    check_policy(roles, "panel", "model-t")


def test_a_role_that_is_not_there(root: Path):
    with pytest.raises(UsageError, match="no judge 'reward'") as caught:
        judge_role(load_roles(root), "reward")
    assert caught.value.hint == "judges there: panel"


def test_validate_checks_roles_and_their_judges(root: Path, capsys: pytest.CaptureFixture[str]):
    assert validate_all(root).items == []
    path = root / "manifests" / "roles.yaml"
    for judge, words in (
        ("nobody", "the harness cannot judge: there is no such harness; got nobody"),
        ("stall", "`scores` of stall does not say where accuracy and effectiveness is"),
    ):
        path.write_text(FILES["manifests/roles.yaml"].replace("judge: stall-judge", f"judge: {judge}"))
        assert main(["validate", "--project", str(root)]) == 1
        err = capsys.readouterr().err
        assert "manifests/roles.yaml:10:37: error[roles-judge]" in err
        assert words in err


def test_a_judge_with_a_tool_that_writes_is_none(root: Path):
    path = root / "manifests" / "judges" / "stall-judge.yaml"
    path.write_text(path.read_text().replace("tools: [look]", "tools: [stall]"))
    assert ["stall-judge has tools that write: reserve" in fault.message for fault in validate_all(root).items] == [
        True
    ]


def test_a_project_without_roles_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match=r"the project has no manifests/roles\.yaml"):
        load_roles(tmp_path)
    assert check_roles(tmp_path).items == []
