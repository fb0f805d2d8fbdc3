"""`harnessctl augment` as a user has it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnessctl.augment.job import read_variations
from harnessctl.bundle.files import encode_bundle, read_bundle
from harnessctl.bundle.variation import rebuild

ENVELOPE = """\
apiVersion: harnessctl/v1
kind: Envelope
name: own
version: 1.0.0
operators:
"""


def run_files(folder: Path) -> dict[str, bytes]:
    names = ("records.jsonl", "refused.jsonl", "coverage.json", "report.md", "parent.bundle.json")
    found = {name: (folder / name).read_bytes() for name in names}
    return found | {p.name: p.read_bytes() for p in (folder / "variants").glob("*")}


def test_variants_are_recorded_counted_and_told(harnessctl, shop):
    done = harnessctl("augment", "n=12", "seed=7", cwd=shop)
    assert done.code == 0, done.err
    folder = shop / "runs" / "latest-augment"
    assert done.out.rstrip().splitlines()[-1] == str(folder.resolve() / "records.jsonl")
    assert all(len(line) <= 80 for line in done.out.splitlines() if "/" not in line)
    for words in ("tool-rename", "answer-price", "get_price", "reply_max_chars"):
        assert words in done.out
    assert "12 variants, 0 refused" in done.err
    parent = read_bundle(folder / "parent.bundle.json")
    variations = list(read_variations(folder / "records.jsonl"))
    assert [v.number for v in variations] == list(range(12))
    assert len({v.variant for v in variations}) == 12
    for variation in variations:
        assert rebuild(parent, variation).digest == variation.variant
    run = json.loads((folder / "run.json").read_text())
    assert (run["status"], run["counts"]) == ("done", {"variants": 12, "refused": 0})
    assert (run["bundle"], run["seeds"]) == (parent.digest, {"augment": 7})
    coverage = json.loads((folder / "coverage.json").read_text())
    assert coverage["variants"] == 12
    assert set(coverage["skills"]) == {"answer-price", "small-talk"}
    assert "| answer-price#lookup |" in (folder / "report.md").read_text()


def test_json_is_the_coverage(harnessctl, shop):
    done = harnessctl("augment", "n=3", "--json", cwd=shop)
    assert done.json["coverage"]["variants"] == 3
    assert done.json["status"] == "done"
    assert Path(done.json["records"]).is_file()


def test_workers_and_a_second_run_change_no_byte(harnessctl, shop):
    for folder, *keys in (("one", "workers=1"), ("two", "workers=2"), ("again", "workers=1")):
        done = harnessctl("augment", "n=20", "seed=3", "bundles=true", *keys, "--run-dir", folder, cwd=shop)
        assert done.code == 0, done.err
    assert run_files(shop / "one") == run_files(shop / "two") == run_files(shop / "again")
    assert len(run_files(shop / "one")) == 25


def test_cfg_prints_the_recipe_and_makes_nothing(harnessctl, shop):
    shown = harnessctl("augment", "--cfg", "envelope=wide", cwd=shop)
    assert "envelope: wide" in shown.out
    assert not (shop / "runs").exists()


def test_one_variant_again_byte_for_byte(harnessctl, shop):
    assert harnessctl("augment", "n=5", "bundles=true", "--run-dir", "made", cwd=shop).code == 0
    done = harnessctl("augment", "--rebuild", "made", "--number", "3")
    written = shop / done.out.strip()
    assert written.read_bytes() == (shop / "made" / "variants" / written.name).read_bytes()
    assert harnessctl("verify", str(written)).code == 0
    shown = harnessctl("show", str(written), "--json").json
    digest = list(read_variations(shop / "made" / "records.jsonl"))[3].variant
    assert shown["digest"] == digest
    assert harnessctl("diff", "made/parent.bundle.json", str(written), "--exit-code").code == 1
    assert "The Tea Shop" in harnessctl("render", str(written)).out
    other = harnessctl("augment", "--rebuild", "made/records.jsonl", "--number", "3", "--out", "v.json", "--json")
    assert (shop / "v.json").read_bytes() == written.read_bytes()
    assert (other.json["number"], other.json["digest"], other.json["path"]) == (3, digest, "v.json")


def test_a_record_without_its_run_is_rebuilt_from_the_project_while_that_is_the_same(harnessctl, shop):
    assert harnessctl("augment", "n=2", "--run-dir", "made", cwd=shop).code == 0
    (shop / "alone.jsonl").write_bytes((shop / "made" / "records.jsonl").read_bytes())
    assert harnessctl("augment", "--rebuild", "alone.jsonl", "--number", "1", "--out", "v.json").code == 0
    skill = shop / "skills/small-talk/SKILL.md"
    skill.write_text(skill.read_text().replace("A short, warm answer.", "A short answer."))
    changed = harnessctl("augment", "--rebuild", "alone.jsonl", "--number", "1", "--out", "w.json")
    assert changed.code == 1
    assert "the record is of a variant of" in changed.err
    bundle = encode_bundle(read_bundle(shop / "made" / "parent.bundle.json"))
    (shop / "parent-copy.json").write_bytes(bundle)
    given = harnessctl("augment", "parent-copy.json", "--rebuild", "alone.jsonl", "--number", "1", "--out", "w.json")
    assert given.code == 0, given.err
    assert (shop / "w.json").read_bytes() == (shop / "v.json").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--number", "3"), "go together"),
        (("--rebuild", "made"), "go together"),
        (("--rebuild", "nowhere", "--number", "1"), "no records at nowhere"),
        (("--rebuild", "made", "--number", "99"), "no record of variant 99"),
        (("envelope=papre",), "did you mean `paper`?"),
        (("envelope=nothing",), "there are none, paper, wide"),
        (("rewriter=poet",), "rewriter"),
        (("rewriter=llm", "model.name=null"), "model"),
        (("n=0",), "n"),
        (("workers=0",), "workers"),
        (("enevlope=paper",), "did you mean envelope"),
        (("a", "b"), "one harness or bundle"),
        (("nobody",), "nobody"),
        (("world=nowhere",), "no world 'nowhere'"),
        (("--run-dir", "made"), "not empty"),
        (("--resume", "made", "--run-dir", "x"), "leave --run-dir out"),
        (("--resume", "nowhere"), "no run.json there"),
        (("--resume", "made", "seed=9"), "another config: "),
    ],
)
def test_a_wrong_key_is_a_usage_error(harnessctl, shop, arguments, says):
    assert harnessctl("augment", "n=1", "--run-dir", "made", cwd=shop).code == 0
    done = harnessctl("augment", *arguments)
    assert done.code in (1, 2)
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (shop / "runs").exists()


@pytest.mark.parametrize(
    ("operators", "line", "says"),
    [
        ("  tool-rename: {rate: 1.5}\n", 6, "got 1.5"),
        ("  tool-renames: {rate: 0.5}\n", 6, "did you mean `tool-rename`?"),
        ("  limit-perturb: {ranges: {reply_max_chars: [10, 300]}}\n", 6, "from 80 to 200"),
        (
            "  skill-mask: {rate: 1.0, allow: [answer-price]}\n",
            6,
            "the envelope would mask answer-price, which is gold",
        ),
        ("  skill-mask: {rate: 1.0, allow: [no-such]}\n", 6, "names no target"),
        ("  skill-mask: {rate: x}\n", 6, "rate"),
    ],
)
def test_an_envelope_that_will_not_do_is_told_by_its_place(harnessctl, shop, operators, line, says):
    path = shop / "manifests/envelopes/own.yaml"
    path.parent.mkdir()
    path.write_text(ENVELOPE + operators)
    done = harnessctl("augment", "envelope=own", cwd=shop)
    assert done.code == 1
    assert f"manifests/envelopes/own.yaml:{line}:" in done.err
    assert says in done.err
    assert not (shop / "runs").exists()
    assert harnessctl("augment", "envelope=own", "--json").json["faults"][0]["path"] == "manifests/envelopes/own.yaml"


def test_a_harness_without_families_has_no_gold_to_mask(harnessctl, shop):
    text = (shop / "manifests/harness.yaml").read_text()
    (shop / "manifests/bare.yaml").write_text(text.replace("name: shop", "name: bare"))
    (shop / "manifests/envelopes").mkdir()
    (shop / "manifests/envelopes/own.yaml").write_text(ENVELOPE + "  skill-mask: {rate: 1.0, allow: [answer-price]}\n")
    done = harnessctl("augment", "bare", "envelope=own", "n=2", cwd=shop)
    assert done.code == 0, done.err
    assert "note: the world shop has no families for the harness bare" in done.err


def test_a_variant_that_breaks_a_law_is_refused_with_the_reason(harnessctl, shop):
    """A project's own operator that renames a tool to a word of the shop's texts."""
    (shop / "manifests/operators").mkdir()
    (shop / "manifests/operators/tool_clash.py").write_text(CLASH)
    (shop / "manifests/envelopes").mkdir()
    (shop / "manifests/envelopes/own.yaml").write_text(ENVELOPE + "  tool-clash: {rate: 0.5}\n")
    done = harnessctl("augment", "envelope=own", "n=20", "--run-dir", "made", cwd=shop)
    assert done.code == 1
    coverage = json.loads((shop / "made/coverage.json").read_text())
    assert 0 < coverage["refused"] < 20
    assert coverage["variants"] + coverage["refused"] == 20
    first = coverage["refusals"][0]
    assert f"variant {first['number']} refused: law {first['law']}" in done.err
    assert first["reason"] in (shop / "made/report.md").read_text().replace("\\|", "|")
    refused = [json.loads(line)["number"] for line in (shop / "made/refused.jsonl").read_text().splitlines()]
    assert len(refused) == coverage["refused"]
    again = harnessctl("augment", "--resume", "made")
    assert again.code == 1
    assert json.loads((shop / "made/coverage.json").read_text()) == coverage


CLASH = '''\
class ToolClash:
    """Gives two tools one name."""

    name = "tool-clash"
    dimension = "tool-definition"
    stage = "rename"
    keeps_difficulty = True
    options = {}
    reads = frozenset()

    def targets(self, draft):
        return ["get_price"]

    def apply(self, target, draft, settings, stream):
        draft.changes.tools[target] = "list_articles"
        return True


OPERATOR = ToolClash()
'''


def begun(process: subprocess.Popen[str]) -> None:
    """Wait until the first variant is recorded."""
    assert process.stderr is not None
    said = process.stderr.readline()
    while not said.startswith("augmenting 1/"):
        assert said, "it ended before it began"
        said = process.stderr.readline()


def test_a_run_that_was_killed_goes_on_where_it_was(harnessctl, shop):
    program = [sys.executable, "-m", "harnessctl", "augment", "n=120", "seed=5"]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([*program, "--run-dir", "killed"], cwd=shop, env=env, stderr=subprocess.PIPE, text=True)
    begun(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    records = shop / "killed" / "records.jsonl"
    assert "status" not in json.loads((shop / "killed" / "run.json").read_text())  # left out while it is `running`
    with records.open("ab") as file:
        file.write(b'{"format": "harnessctl/vari')
    part = records.read_bytes()
    done = harnessctl("augment", "--resume", "killed", cwd=shop)
    assert done.code == 0, done.err
    assert harnessctl("augment", "n=120", "seed=5", "--run-dir", "whole").code == 0
    assert run_files(shop / "killed") == run_files(shop / "whole")
    assert records.read_bytes().startswith(part[: part.rindex(b"\n") + 1])


def test_two_processes_do_not_write_into_one_run(harnessctl, shop):
    assert harnessctl("augment", "n=2", "--run-dir", "made", cwd=shop).code == 0
    with (shop / "made" / "records.jsonl").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = harnessctl("augment", "--resume", "made")
    assert done.code == 2
    assert "another process is writing" in done.err


def test_a_run_of_another_bundle_is_not_resumed(harnessctl, shop):
    assert harnessctl("augment", "n=2", "--run-dir", "made", cwd=shop).code == 0
    skill = shop / "skills/small-talk/SKILL.md"
    skill.write_text(skill.read_text().replace("A short, warm answer.", "A short answer."))
    done = harnessctl("augment", "--resume", "made")
    assert done.code == 2
    assert "another bundle" in done.err


def test_none_changes_nothing(harnessctl, shop):
    done = harnessctl("augment", "envelope=none", "n=3", "--json", cwd=shop)
    assert done.json["coverage"]["operators"] == {}
    folder = Path(done.json["run"])
    parent = read_bundle(folder / "parent.bundle.json")
    assert {v.variant for v in read_variations(folder / "records.jsonl")} == {parent.digest}


def test_a_model_words_the_texts_and_workers_read_its_cache(harnessctl, shop, chat):
    keys = ("n=12", "rewriter=llm", "model.name=m", f"model.base_url={chat.url}")
    first = harnessctl("augment", *keys, "--run-dir", "one", cwd=shop)
    assert first.code == 0, first.err
    assert "texts are worded by rules" in first.err
    assert chat.asked
    count = len(chat.asked)
    again = harnessctl("augment", *keys, "workers=2", "--run-dir", "two")
    assert again.code == 0, again.err
    assert len(chat.asked) == count
    assert (shop / "one/records.jsonl").read_bytes() == (shop / "two/records.jsonl").read_bytes()
    assert next(read_variations(shop / "one/records.jsonl")).rewriter == "llm"
    down = harnessctl("augment", "n=1", "rewriter=llm", "model.name=other", "model.base_url=http://127.0.0.1:9/v1")
    assert down.code == 1
    assert "127.0.0.1:9" in down.err
    assert not (shop / "runs").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_a_run_that_says_how_to_go_on(harnessctl, shop, workers):
    program = [sys.executable, "-m", "harnessctl", "augment", "n=100000", f"workers={workers}", "--run-dir", "made"]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(program, cwd=shop, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    records = shop / "made" / "records.jsonl"
    begun(process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "go on with `harnessctl augment --resume" in said
    assert "Traceback" not in said
    run = json.loads((shop / "made" / "run.json").read_text())
    assert run["status"] == "interrupted"
    assert run["counts"]["variants"] == len(records.read_bytes().splitlines())
    assert json.loads((shop / "made" / "coverage.json").read_text())["variants"] == run["counts"]["variants"]


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_the_shipped_hosts_within_wide(harnessctl, repository, tmp_path, harness):
    name = [] if harness == "live-stream" else [harness]
    done = harnessctl(
        "augment",
        *name,
        "envelope=wide",
        "n=8",
        "--project",
        str(repository),
        "--run-dir",
        str(tmp_path / "made"),
        "--json",
    )
    assert done.code == 0, done.err
    coverage = done.json["coverage"]
    assert (coverage["variants"], coverage["refused"], coverage["without_wording"]) == (8, 0, [])
    assert min(tool["names"] for tool in coverage["tools"].values()) > 2
