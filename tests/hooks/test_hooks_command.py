from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from hook_scenes import call, decide, hook_set, run, scene

ALIVE = 'exec 9>"$HARNESSCTL_ALIVE"; echo x >&9\n'


def sh(body: str, event: str = "stop", at=None, **hook):
    """What a hook that runs a shell script decided."""
    files = {"hook.sh": f"#!/bin/sh\n{body}\n"}
    return command({"run": ["./hook.sh"], "files": ["hook.sh"]}, event, at, files=files, **hook)


def command(spec, event: str = "stop", at=None, files=None, **hook):
    check = {"event": event, "check": {"command": spec}, "otherwise": {"action": "block"}, **hook}
    at = at if at is not None else scene(event)
    run(hook_set(check, files=files or {}), event, at)
    return at.decisions[-1]


@pytest.mark.parametrize(
    ("body", "decision", "reason"),
    [
        ("exit 0", "pass", None),
        ('echo \'{"decision": "block"}\'', "pass", None),
        ("echo no >&2; exit 2", "block", "no"),
        ("exit 2", "block", None),
        ("echo hm >&2; exit 1", "warn", "exit 1: hm"),
        ("exit 3", "warn", "exit 3"),
        ("exit 255", "warn", "exit 255"),
    ],
)
def test_exit_codes(body, decision, reason):
    seen = sh(body)
    assert (seen.decision, seen.reason, seen.error) == (decision, reason, None)


def test_the_reason_is_for_the_model():
    hook = {"event": "stop", "check": {"command": {"shell": "echo 'Too long.' >&2; exit 2"}}}
    verdict, _ = run(hook_set({**hook, "otherwise": {"action": "retry", "message": {"text": ["Again:"]}}}))
    assert verdict.message == "Again:\nToo long."


def test_what_a_program_is_told(tmp_path):
    at = scene("post_tool", session="s1", calls=[call("get_product", result={"price": 89}, item="i1")])
    sh(f'cat > "{tmp_path}/seen"', "post_tool", at)
    assert orjson.loads((tmp_path / "seen").read_bytes()) == {
        "protocol": "harnessctl/hook.v1",
        "hook": "hook-0",
        "event": "post_tool",
        "context": {"room": {"id": "r9", "price": 89.0}},
        "limits": {"reply_max_chars": 20, "max_rounds": 4},
        "skills_loaded": [],
        "round": 1,
        "session": {"id": "s1", "turns": 0, "skills": [], "history": []},
        "calls": [
            {"round": 1, "name": "get_product", "arguments": {"item": "i1"}, "status": "ok", "result": {"price": 89}}
        ],
        "message": "how much is it",
        "output": "the output",
        "tool": "add_to_cart",
        "args": {"item": "i1", "quantity": 2},
        "result": {"price": 89},
        "status": "ok",
    }


@pytest.mark.parametrize("result", [{1: 2}, object(), float("nan"), 10**40, "\ud800", {"a": (1, {2})}])
def test_what_json_cannot_hold_is_told_as_text(result):
    assert (
        sh(
            f"'{sys.executable}' -c 'import json,sys; json.load(sys.stdin)'",
            "post_tool",
            scene("post_tool", result=result),
        ).decision
        == "pass"
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"run": ["no-such-program"]}, "`no-such-program` was not launched: there is no such program on PATH"),
        ({"run": ["./gone.sh"]}, "`./gone.sh` was not launched: there is no such file"),
        ({"run": [sys.executable, "gone.py"]}, "`gone.py` was not launched"),
        ({"run": [sys.executable, "-B", "-W", "error", "gone.py", "x"]}, "`gone.py` was not launched"),
        ({"run": ["/usr/bin/env", "sh", "gone.sh"]}, "`gone.sh` was not launched: `sh` would not find it"),
        ({"shell": f"{sys.executable} gone.py --all"}, "`gone.py` was not launched"),
        ({"shell": "sh gone.sh"}, "`gone.sh` was not launched"),
        ({"shell": f"{sys.executable} ./gone$NOTHING.py"}, "it was not launched (exit 2): "),
        ({"shell": "sh ./gone$NOTHING.sh"}, "it was not launched (exit "),
        ({"shell": "no-such-program"}, "it was not launched (exit 127): "),
        ({"shell": "./plain.txt"}, "it was not launched (exit 126): "),
        ({"shell": f"{sys.executable} -m no_such_module"}, "it was not launched (exit 1): "),
        ({"shell": "if then"}, "it was not launched (exit "),
        ({"run": ["./broken.sh"]}, "it was not launched (exit "),
        ({"run": ["./plain.txt"]}, "was not launched: [Errno 13] Permission denied"),
        ({"run": ["./plain.txt"]}, "(a script is made executable by a first line such as #!/usr/bin/env python3)"),
        ({"run": ["./dos.sh"]}, "the line does not end in CR LF"),
        ({"run": ["./binary"]}, "was not launched: [Errno 8]"),
        ({"run": ["sh", "-c", "\0"]}, "was not launched"),
        ({"shell": "kill -9 $$"}, "signal SIGKILL ended it"),
        ({"shell": "echo bye >&2; kill -SEGV $$"}, "signal SIGSEGV ended it: bye"),
    ],
)
def test_a_failed_launch_is_never_a_decision(spec, words):
    files = {
        "plain.txt": "exit 0\n",
        "dos.sh": "#!/bin/sh\r\nexit 0\r\n",
        "broken.sh": "#!/bin/sh\nif then\n",
        "binary": "#!\n",
    }
    seen = command(spec, files=files)
    assert seen.decision == "error"
    assert words in seen.error


@pytest.mark.parametrize("on_error", ["block", "pass"])
def test_on_error_says_what_a_failed_launch_means(on_error):
    check = {"event": "stop", "check": {"command": {"run": ["./gone"]}}, "otherwise": {"action": "warn"}}
    verdict, at = run(hook_set({**check, "on_error": on_error}))
    assert verdict.action == on_error
    assert at.decisions[0].decision == "error"


def test_a_decision_about_somebody_elses_syntax_error_is_a_decision():
    seen = sh("echo 'other.sh: line 3: syntax error near unexpected token' >&2; exit 2")
    assert (seen.decision, seen.error) == ("block", None)


def test_a_script_that_crashes_warns_with_what_it_said():
    files = {"hook.py": "import sys\nraise ValueError('boom')\n"}
    seen = command({"run": [sys.executable, "hook.py"], "files": ["hook.py"]}, files=files)
    assert seen.decision == "warn"
    assert seen.reason.endswith("ValueError: boom")


@pytest.mark.parametrize(
    "body",
    [
        "exec sleep 60",
        "sleep 60",
        "trap '' TERM INT HUP; sleep 60; sleep 60",
        "exec 1>&- 2>&-; sleep 60",
        "exec 0<&- 1>&- 2>&-; sleep 60",
        "while :; do echo spam; done",
        "(trap '' TERM; sleep 60) & wait",
    ],
)
def test_a_script_that_hangs_is_killed_with_its_children(body, witness):
    begun = time.monotonic()
    seen = sh(ALIVE + body, timeout_s=1)  # a busy machine may take half of it to start the shell
    assert seen.error == "hook hook-0: it timed out and was killed"
    assert time.monotonic() - begun < 5
    assert witness.was_there_and_is_gone()


def test_what_a_script_leaves_behind_is_killed_and_not_waited_for(witness):
    begun = time.monotonic()
    seen = sh(ALIVE + "sleep 60 & (sleep 60 &)\necho done >&2; exit 2", timeout_s=30)
    assert (seen.decision, seen.reason) == ("block", "done")
    assert time.monotonic() - begun < 10
    assert witness.was_there_and_is_gone()


def test_a_cancelled_request_kills_its_script(witness):
    hooks = hook_set(
        {"event": "stop", "check": {"command": {"run": ["./h.sh"]}}, "otherwise": {"action": "block"}},
        files={"h.sh": f"#!/bin/sh\n{ALIVE}exec sleep 60\n"},
    )

    async def cancelled():
        task = asyncio.ensure_future(hooks.run("stop", scene()))
        started = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(witness.reader, started.set_result, None)
        await started
        asyncio.get_running_loop().remove_reader(witness.reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert witness.was_there_and_is_gone()


MIB = 1024 * 1024


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_script_that_prints_ten_megabytes(stream):
    seen = sh(f"head -c {10 * MIB} /dev/zero | tr '\\0' x >&{stream}; echo end >&2; exit 2")
    assert seen.decision == "block"
    assert len(seen.reason) <= 65_536
    assert seen.reason.endswith("end") == (stream == "1")


def test_a_script_that_prints_before_it_reads_what_is_long():
    """Neither waits for the other: both sides of the pipes are served at once."""
    at = scene("post_tool", result="r" * (3 * MIB))
    body = f"head -c {3 * MIB} /dev/zero; test $(wc -c) -gt {3 * MIB} || exit 2"
    assert sh(body, "post_tool", at).decision == "pass"


@pytest.mark.parametrize("body", ["exec 0<&-; sleep 0.05; exit 2", "exit 2", "head -c 10 >/dev/null; exit 2"])
def test_a_script_that_does_not_read_its_input(body):
    assert sh(body, "post_tool", scene("post_tool", result="r" * (3 * MIB))).decision == "block"


def test_output_that_is_not_utf8():
    assert sh("printf 'a\\377b' >&2; exit 2").reason == "a\ufffdb"


def test_the_environment_is_small(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "s")
    monkeypatch.setenv("SHOP_ID", "7")
    monkeypatch.setenv("HARNESSCTL_MODE", "test")
    spec = {"shell": f"env > '{tmp_path}/env'", "env": ["SHOP_ID", "NOT_SET"]}
    assert command(spec).decision == "pass"
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert "SECRET_KEY" not in names
    assert {"SHOP_ID", "HARNESSCTL_MODE", "PATH"} <= names
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", "HARNESSCTL_MODE", "SHOP_ID", "PWD", "OLDPWD", "SHLVL", "_"}


def test_files_stand_in_a_private_folder_where_the_program_runs(tmp_path, own_temporary_folder):
    files = {"hooks/main.sh": "#!/bin/sh\n. ./hooks/lib.sh\n", "hooks/lib.sh": f"pwd > '{tmp_path}/pwd'\n"}
    assert command({"run": ["hooks/main.sh"], "files": list(files)}, files=files).decision == "pass"
    folder = Path((tmp_path / "pwd").read_text().strip())
    assert own_temporary_folder in folder.parents
    assert [p.stat().st_mode & 0o777 for p in (folder.parent, folder)] == [0o700, 0o700]
    assert (folder / "hooks/lib.sh").stat().st_mode & 0o777 == 0o600


def test_two_versions_of_a_script_run_side_by_side():
    check = {"event": "stop", "check": {"command": {"run": ["./h.sh"]}}, "otherwise": {"action": "block"}}
    old, new = (hook_set(check, files={"h.sh": f"#!/bin/sh\necho v{n} >&2; exit 2\n"}) for n in (1, 2))
    assert [run(hooks)[0].message for hooks in (old, new, old)] == ["v1", "v2", "v1"]


def test_many_at_once():
    hooks = hook_set({"event": "stop", "check": {"command": {"shell": "exit 2"}}, "otherwise": {"action": "warn"}})
    scenes = [scene() for _ in range(40)]

    async def all_of_them():
        await asyncio.gather(*(hooks.run("stop", at) for at in scenes))

    asyncio.run(all_of_them())
    assert {at.decisions[0].decision for at in scenes} == {"warn"}


def test_the_manifest_is_checked_when_the_hook_is_made():
    for spec, words in (
        ({"run": [], "files": []}, "Expected `array` of length >= 1"),
        ({"run": ["x"], "protocol": "cursor"}, "Invalid enum value 'cursor'"),
        ({"run": "x"}, "not a CommandCheck"),
    ):
        seen = decide({"command": spec})
        assert seen.decision == "error"
        assert words in seen.error


def test_the_key_of_viewers_names_is_passed_on_only_where_a_hook_names_it(monkeypatch):
    monkeypatch.setenv("HARNESSCTL_VIEWER_KEY", "sesame")
    monkeypatch.setenv("HARNESSCTL_OTHER", "open")
    body = 'echo "$HARNESSCTL_VIEWER_KEY $HARNESSCTL_OTHER" >&2; exit 2'
    assert command({"shell": body}).reason == "open"
    assert command({"shell": body, "env": ["HARNESSCTL_VIEWER_KEY"]}).reason == "sesame open"


def test_no_program_outlives_us(tmp_path):
    script = """
import sys, threading, time
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from harnessctl.runtime.command import Command, _running
command = Command(run=None, shell="sleep 60")
run = lambda: command.run(b"", folder=Path(sys.argv[1]), extra={}, deadline=time.monotonic() + 60, cancelled=threading.Event())
threading.Thread(target=run, daemon=True).start()
while not _running:
    time.sleep(0.001)
print([process.pid for process in _running][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *sys.path], capture_output=True, text=True, timeout=30
    )
    assert is_gone(int(done.stdout), within_s=5)


def is_gone(pid: int, *, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
