from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnessctl.trajectory import read_trajectories

SCRIPTED = ("policy=scripted", "script=script.jsonl")


def records(shop: Path):
    return list(read_trajectories(shop / "runs" / "latest-run" / "trajectories.jsonl"))


def test_comments_are_answered_and_recorded(harnessctl, shop):
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    assert done.code == 0, done.err
    assert "The teapot is 89 yuan." in done.out
    first, second = records(shop)
    assert first.stop == "replied"
    assert first.skills == ["answer-question"]
    assert [c.name for c in first.tools] == ["load_skill", "get_price"]
    assert second.reply == "Yes, we have cups; one is 19 yuan."
    assert [d.hook for d in second.hooks if d.decision == "retry"] == ["grounded-price"]
    run = json.loads((shop / "runs" / "latest-run" / "run.json").read_text())
    assert run["status"] == "done"
    assert run["counts"]["replied"] == 2
    assert run["bundle"] == first.bundle
    assert "policy: scripted" in (shop / "runs" / "latest-run" / "config.yaml").read_text()


def test_stdin_json_and_view(harnessctl, shop, monkeypatch):
    line = b'{"id": "a", "text": "How much is the teapot?"}\n'

    class Stdin:
        buffer = io.BytesIO(line)

    monkeypatch.setattr("sys.stdin", Stdin)
    done = harnessctl("run", "--input", "-", *SCRIPTED, "--json", cwd=shop)
    assert done.json["counts"]["replied"] == 1
    shown = harnessctl("view", "runs/latest-run", "--id", "a")
    assert "get_price" in shown.out
    assert "The teapot is 89 yuan." in shown.out
    assert harnessctl("view", "runs/latest-run", "--id", "zzz").code == 2
    assert harnessctl("view", "runs/latest-run", "--json").json[0]["id"] == "a"
    assert harnessctl("view", "runs/latest-run", "--stop", "deadline", "--json").json == []


def test_cfg_prints_the_recipe_and_runs_nothing(harnessctl, shop):
    shown = harnessctl("run", "--cfg", "seed=9", cwd=shop)
    assert shown.code == 0
    assert "seed: 9" in shown.out
    assert not (shop / "runs").exists()


def test_a_sweep_runs_every_combination(harnessctl, shop):
    done = harnessctl("run", "-m", "--input", "comments.jsonl", *SCRIPTED, "loop=harness,react", "limit=1", cwd=shop)
    assert done.code == 0
    folders = [p for p in (shop / "runs").iterdir() if not p.is_symlink()]
    assert len(folders) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[]", "input-form"),
        ('{"id": "x"}', "exactly one of them"),
        ('{"id": "x", "text": "a", "messages": [{"text": "b"}]}', "exactly one of them"),
        ('{"id": "x", "text": 3}', "Expected `str"),
        ('{"id": "x", "text": "a", "colour": 1}', "colour"),
        ('{"id": "1", "text": "again"}', "taken by line 1"),
    ],
)
def test_bad_input_is_named_by_line_before_anything_runs(harnessctl, shop, line, says):
    with (shop / "comments.jsonl").open("a") as file:
        file.write(line + "\n")
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    assert done.code == 1
    assert "comments.jsonl:3:" in done.err
    assert says in done.err
    assert not (shop / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("policy=scripted",), "script=FILE"),
        (("policy=nothing",), "policy"),
        (("seed=x", *SCRIPTED), "seed"),
        (("workers=0", *SCRIPTED), "workers"),
        (("sed=1", *SCRIPTED), "did you mean seed"),
        (("limits.deadline_s=-1", *SCRIPTED), "deadline_s"),
        (("other", "another", *SCRIPTED), "one harness"),
        (("no-such-harness", *SCRIPTED), "no-such-harness"),
        (("world=nowhere", *SCRIPTED), "nowhere"),
        (("policy=scripted", "script=none.jsonl"), "none.jsonl"),
    ],
)
def test_a_wrong_key_is_a_usage_error(harnessctl, shop, arguments, says):
    done = harnessctl("run", "--input", "comments.jsonl", *arguments, cwd=shop)
    assert done.code in (1, 2)
    assert says in done.err
    assert "Traceback" not in done.err


def test_a_bundle_runs_without_its_sources(harnessctl, shop, tmp_path):
    path = Path(harnessctl("compile", "--json", cwd=shop).json["bundles"][0]["path"])
    alone = tmp_path / "alone"
    alone.mkdir()
    for source in (path, shop / "comments.jsonl", shop / "script.jsonl"):
        (alone / source.name).write_bytes(source.read_bytes())
    done = harnessctl("run", path.name, "--input", "comments.jsonl", *SCRIPTED, cwd=alone)
    assert done.code == 0, done.err
    assert records(alone)[0].reply == "The teapot is 89 yuan."


def test_resume_answers_nothing_twice(harnessctl, shop):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    folder = (shop / "runs" / "latest-run").resolve()
    file = folder / "trajectories.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:50])
    again = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "--resume", str(folder))
    assert again.code == 0, again.err
    assert "1 of 2 requests are recorded" in again.err
    assert [t.id for t in read_trajectories(file)] == ["1", "2"]
    other = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "seed=5", "--resume", str(folder))
    assert other.code == 2
    assert "another config" in other.err


def slow_project(shop: Path, count: int) -> list[str]:
    """A run of `count` requests of which each takes 20 ms."""
    lines = [json.dumps({"id": str(n), "text": f"teapot {n}"}) for n in range(count)]
    (shop / "comments.jsonl").write_text("\n".join(lines) + "\n")
    steps = [{"tool_calls": [{"name": "load_skill", "arguments": {"skill": "answer-question"}}], "delay_s": 0.02}]
    (shop / "script.jsonl").write_text(json.dumps({"replies": [*steps, {"content": "Yes."}]}) + "\n")
    return [sys.executable, "-m", "harnessctl", "run", "--input", "comments.jsonl", *SCRIPTED]


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_where_it_stopped(shop, sent):
    command = slow_project(shop, 60)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=shop, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(b"answering 5/"):
            break
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -9)
    assert b"Traceback" not in err
    before = [t.id for t in records(shop)]
    assert 5 <= len(before) < 60
    done = subprocess.run(
        [*command, "--resume", "runs/latest-run"], cwd=shop, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    after = [t.id for t in records(shop)]
    assert after[: len(before)] == before
    assert sorted(after, key=int) == [str(n) for n in range(60)]
