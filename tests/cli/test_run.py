from __future__ import annotations

import fcntl
import io
import json
import os
import resource
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
    done = harnessctl("run", "-m", "--input", "comments.jsonl", *SCRIPTED, "seed=1,2", "--json")
    assert [ran["counts"]["replied"] for ran in done.json] == [2, 2]


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
        (("limits.deadline_s=inf", *SCRIPTED), "deadline_s"),
        (("limits.max_parallel_tools=1000000", *SCRIPTED), "max_parallel_tools"),
        (("repeats=1000000000", *SCRIPTED), "repeats"),
        (("viewers=hash", *SCRIPTED), "HARNESSCTL_VIEWER_KEY"),
        (("--run-dir", "comments.jsonl", *SCRIPTED), "comments.jsonl is a file"),
        (("--run-dir", "comments.jsonl/x", *SCRIPTED), "cannot"),
        (("--run-dir", "mine", "--resume", "runs/latest-run"), "leave --run-dir out"),
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
    assert not (shop / "runs").exists()


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
    assert "another config: seed" in other.err


def test_resume_needs_nothing_said_again(harnessctl, shop, tmp_path, monkeypatch):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "limits.deadline_s=9", cwd=shop)
    folder = (shop / "runs" / "latest-run").resolve()
    file = folder / "trajectories.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1].rstrip(b"\n"))  # whole but for its end: answered again, not lost
    again = harnessctl("run", "--resume", str(folder), "--json")
    assert again.code == 0, again.err
    assert again.json["counts"] == {"replied": 2, "requests": 2, "done": 2}
    assert [t.id for t in read_trajectories(file)] == ["1", "2"]
    assert harnessctl("run", "--resume", str(folder), *SCRIPTED, "limits.deadline_s=9", "workers=4").code == 0


def test_resume_takes_new_lines_and_no_changed_ones(harnessctl, shop):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    with (shop / "comments.jsonl").open("a") as file:
        file.write('{"id": "3", "text": "What does the teapot cost?"}\n')
    more = harnessctl("run", "--resume", "runs/latest-run")
    assert more.code == 0, more.err
    assert [t.id for t in records(shop)] == ["1", "2", "3"]
    (shop / "comments.jsonl").write_text('{"id": "1", "text": "Something else"}\n')
    other = harnessctl("run", "--resume", "runs/latest-run")
    assert other.code == 2
    assert "1 request of the input changed since they were answered: 1" in other.err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("run.json", "[]", "format None"),
        ("config.yaml", "- 1\n", "not a config"),
        ("config.yaml", "a: [\n", "not a config"),
        ("config.yaml", b"\xff", "not UTF-8"),
        ("config.yaml", None, "cannot read"),
        ("trajectories.jsonl", "{}\n", "not a trajectory"),
    ],
)
def test_a_damaged_run_is_named_and_stays_as_it_is(harnessctl, shop, name, content, says):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    folder = shop / "runs" / "latest-run"
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = (folder / "run.json").read_bytes()
    done = harnessctl("run", "--resume", "runs/latest-run")
    assert done.code in (1, 2)
    assert says in done.err
    assert (folder / "run.json").read_bytes() == before


def test_two_processes_do_not_write_to_one_run(harnessctl, shop):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    with (shop / "runs" / "latest-run" / "trajectories.jsonl").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = harnessctl("run", "--resume", "runs/latest-run")
    assert done.code == 2
    assert "another process is writing" in done.err


def test_what_tools_print_is_not_on_standard_output(shop):
    tools = shop / "manifests" / "tools" / "shop_tools.py"
    tools.write_text(
        'import subprocess\n\ndef get_price(article):\n    print("PRINTED")\n    subprocess.run(["echo", "ECHOED"])\n    return 89\n'
    )
    command = [sys.executable, "-m", "harnessctl", "run", "--input", "comments.jsonl", *SCRIPTED, "--json"]
    done = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["status"] == "done"
    assert "PRINTED" in done.stderr and "ECHOED" in done.stderr


def test_a_table_of_many_rows_is_cut_and_counts_are_whole(harnessctl, shop):
    lines = [json.dumps({"id": str(n), "text": "teapot"}) for n in range(150)]
    (shop / "comments.jsonl").write_text("\n".join(lines) + "\n")
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "workers=8", cwd=shop)
    assert done.code == 0
    assert "and 50 more: harnessctl view" in done.err
    assert "replied 150" in done.err


def test_an_input_without_requests_is_a_usage_error(harnessctl, shop):
    (shop / "comments.jsonl").write_text("\n\n")
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    assert (done.code, (shop / "runs").exists()) == (2, False)


def test_repeats_that_would_give_an_id_twice_are_refused(harnessctl, shop):
    (shop / "comments.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "a#2", "text": "x"}\n')
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "repeats=2", cwd=shop)
    assert done.code == 2
    assert "ids of the input end in #2" in done.err


def test_nothing_that_was_recorded_has_power_over_the_terminal(harnessctl, shop):
    text = "\x1b]0;pwned\x07 \u202etxt"
    (shop / "comments.jsonl").write_text(json.dumps({"id": "a\x1b[2J", "text": text}) + "\n")
    (shop / "script.jsonl").write_text(json.dumps({"replies": [{"content": "\x1b[31mred"}]}) + "\n")
    done = harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    shown = harnessctl("view"), harnessctl("view", "--id", "a\x1b[2J")
    for output in (done.out, done.err, *(s.out for s in shown)):
        assert "\x1b" not in output and "\u202e" not in output
    assert "\\x1b[2J" in done.err
    assert "\\x1b[31mred" in shown[1].out


def test_view_finds_the_runs_of_the_project_from_a_folder_in_it(harnessctl, shop):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, cwd=shop)
    assert harnessctl("view", "--json", cwd=shop / "manifests").json[1]["id"] == "2"
    assert harnessctl("view", "--limit", "1", "--json").json[0]["id"] == "1"
    wrong = harnessctl("view", "--stop", "nonsense")
    assert wrong.code == 2
    assert "replied, refused" in wrong.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((b'"tool_calls":[', b'"tool_calls":[7,'), "load_skill"),
        ((b'"text":"How much is the teapot?"', b'"messages":7'), "89 yuan"),
        ((b'"content":"', b'"content":7,"x":"'), "89 yuan"),
    ],
)
def test_view_shows_what_it_can_of_a_record_made_by_hand(harnessctl, shop, change, says):
    harnessctl("run", "--input", "comments.jsonl", *SCRIPTED, "limit=1", cwd=shop)
    file = shop / "runs" / "latest-run" / "trajectories.jsonl"
    file.write_bytes(file.read_bytes().replace(*change))
    for arguments in ((), ("--id", "1"), ("--json",)):
        done = harnessctl("view", *arguments)
        assert done.code == 0, done.err
    assert says in harnessctl("view", "--id", "1").out


@pytest.mark.parametrize("closed", [">&-", "<&- 2>&-"])
def test_closed_standard_streams_stop_nothing(shop, closed):
    command = f"{sys.executable} -m harnessctl run --input comments.jsonl {' '.join(SCRIPTED)} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=shop, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(records(shop)) == 2
    assert json.loads((shop / "runs" / "latest-run" / "run.json").read_text())["status"] == "done"


def test_nobody_reading_the_talk_stops_no_run(shop):
    slow_project(shop, 20)
    command = f"{sys.executable} -m harnessctl run --input comments.jsonl {' '.join(SCRIPTED)} 2>&1 | head -1; exit $?"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=shop, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert len(records(shop)) == 20


def test_a_full_disk_is_one_sentence_and_leaves_whole_lines(shop):
    command = slow_project(shop, 60)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731
    done = subprocess.run(
        [*command, "workers=8"], cwd=shop, capture_output=True, text=True, timeout=60, preexec_fn=limit
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: cannot write")
    assert "Traceback" not in done.stderr
    assert (shop / "runs/latest-run/trajectories.jsonl").read_bytes().endswith(b"\n")
    assert json.loads((shop / "runs" / "latest-run" / "run.json").read_text())["status"] == "failed"


def slow_project(shop: Path, count: int) -> list[str]:
    """A run of `count` requests of which each takes 20 ms."""
    lines = [json.dumps({"id": str(n), "text": f"teapot {n}"}) for n in range(count)]
    (shop / "comments.jsonl").write_text("\n".join(lines) + "\n")
    steps = [{"tool_calls": [{"name": "load_skill", "arguments": {"skill": "answer-question"}}], "delay_s": 0.02}]
    (shop / "script.jsonl").write_text(json.dumps({"replies": [*steps, {"content": "Yes."}]}) + "\n")
    return [sys.executable, "-m", "harnessctl", "run", "--input", "comments.jsonl", *SCRIPTED]


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
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
    assert process.returncode == (-9 if sent == signal.SIGKILL else 130)
    assert b"Traceback" not in err
    run = json.loads((shop / "runs" / "latest-run" / "run.json").read_text())
    assert run.get("status", "running") == ("running" if sent == signal.SIGKILL else "interrupted")
    before = [t.id for t in records(shop)]
    assert 5 <= len(before) < 60
    command = [sys.executable, "-m", "harnessctl", "run", "--resume", "runs/latest-run", "--json"]
    done = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"replied": 60, "requests": 60, "done": 60}
    after = [t.id for t in records(shop)]
    assert after[: len(before)] == before
    assert sorted(after, key=int) == [str(n) for n in range(60)]
