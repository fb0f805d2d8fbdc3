"""Import of hooks: the files of three coding agents."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from import_project import compiles, contents

from harnessctl.compile.revision import load_side
from harnessctl.importing import import_hooks
from harnessctl.importing.report import Entry
from harnessctl.runtime.command import Command
from harnessctl.runtime.layout import Layout


def hook(command: object = "check.sh", **more) -> dict:
    return {"type": "command", "command": command, **more}


def claude(event: str, *hooks: dict, matcher: str | None = None, **more) -> str:
    group = {"hooks": list(hooks), **more} | ({} if matcher is None else {"matcher": matcher})
    return json.dumps({"hooks": {event: [group]}}, indent=1)


def only(folders, files: dict[str, str | bytes]) -> tuple[Entry, Path]:
    theirs, ours = folders(files)
    entry = next(e for e in import_hooks(theirs, ours).entries if e.outcome != "passed over")
    assert compiles(ours) == []
    return entry, ours


def manifest(root: Path, name: str = "guard") -> str:
    return (root / f"manifests/hooks/{name}.yaml").read_text()


def messages(entry: Entry, kind: str) -> list[str]:
    return [f"{note.line}: {note.message}" for note in entry.notes if note.kind == kind]


def test_a_command_hook_for_every_tool(folders) -> None:
    text = claude("PreToolUse", hook("jq -e .tool_input", timeout=7), matcher="*", description="Looks at calls")
    entry, root = only(folders, {"guard.json": text})
    assert entry.files == ["manifests/hooks/guard.yaml"]
    assert (
        manifest(root)
        == """\
apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: guard-pre-tool
    event: pre_tool
    description: Looks at calls
    check:
      command:
        shell: jq -e .tool_input
        protocol: claude
    otherwise:
      action: block
    timeout_s: 7
"""
    )
    assert [n.message for n in entry.notes] == [
        "a program that cannot be launched blocks here (on_error: block); write on_error: pass to let it go on, as there"
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("UserPromptSubmit", "event: input\n    check:"),
        ("PostToolUse", "event: post_tool\n    check:"),
        ("Stop", "action: retry\n      max_retries: 2\n      exhausted: warn"),
        ("PostToolUseFailure", "when:\n      result: [error, timeout, denied, invalid]"),
        ("BeforeTool", "protocol: gemini\n    otherwise:\n      action: block"),
        ("BeforeModel", "event: pre_model"),
        ("AfterModel", "event: post_model"),
        ("AfterTool", "event: post_tool"),
        ("BeforeAgent", "event: input"),
        ("AfterAgent", "action: retry"),
    ],
)
def test_events(folders, event: str, expected: str) -> None:
    _, root = only(folders, {"guard.json": claude(event, hook("true"))})
    assert expected in manifest(root)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("SessionStart", "a request has no session that starts or ends"),
        ("PreCompact", "the context of a request is never compacted"),
        ("Notification", "nobody waits at a terminal to be notified"),
        ("SubagentStop", "there are no subagents here"),
        ("PermissionRequest", "there is nobody to ask for a permission here"),
        ("beforeShellExecution", "it is about files, shells and editors"),
        ("Whatever", "it is not an event that is known here"),
    ],
)
def test_events_without_counterpart(folders, event: str, reason: str) -> None:
    entry, root = only(folders, {"guard.json": claude(event, hook("true"))})
    assert entry.reason.startswith(f"its only hook cannot be carried over: {event}: {reason}")
    assert messages(entry, "not carried over")[0].startswith(f"6: {event}: {reason}")
    assert not (root / "manifests/hooks").exists()


def test_matchers_are_the_tools_of_the_project(folders) -> None:
    group = [
        {"matcher": m, "hooks": [hook("true")]} for m in ("get_.*", "mcp__shop__.*", "Bash", "[", "get_price|Edit")
    ]
    text = json.dumps({"hooks": {"PreToolUse": group}})
    entry, root = only(folders, {"guard.json": text})
    assert manifest(root).count("tools: [get_price]") == 3
    assert [m.partition(": ")[2] for m in messages(entry, "not carried over")] == [
        "PreToolUse: its matcher 'Bash' matches no tool of this project, which has get_price, load_skill",
        "PreToolUse: its matcher '[' is not a regular expression: unterminated character set at position 0",
    ]


def test_other_types_conditions_and_shells(folders) -> None:
    items = [
        {"type": "prompt", "prompt": "is it fine?"},
        hook("true", **{"if": "Bash(git *)"}),
        hook("x", shell="powershell"),
        {"type": "command"},
        hook(["python3", "-c", "print('a b')"], timeout=-1, statusMessage="..."),
        hook("true", **{"async": True}),
    ]
    entry, root = only(folders, {"guard.json": claude("Stop", *items)})
    assert [m.partition(": ")[2] for m in messages(entry, "not carried over")] == [
        "Stop: a hook of type 'prompt', not a command: a judge harness does that here",
        "Stop: its condition `if: Bash(git *)` is about the commands of a coding agent",
        "Stop: its shell is 'powershell'; bash and sh are run here",
        "Stop: it has no command",
        "the timeout -1 is no number of seconds",
        "guard-stop: statusMessage",
    ]
    text = manifest(root)
    assert "run: [python3, -c, print('a b')]" in text
    assert 'id: guard-stop-2\n    event: stop\n    observe:\n      command:\n        shell: "true"' in text


def test_ids_and_names_are_kept_as_slugs(folders) -> None:
    text = claude("Stop", hook("true"), id="stop:Check Log")
    entry, root = only(folders, {"plugin-a/hooks/hooks.json": text})
    assert "id: stop-check-log" in manifest(root, "plugin-a")
    assert "the hook 'stop:Check Log' is called `stop-check-log`" in messages(entry, "changed")[0]


def test_two_files_of_one_name_and_ids_that_are_taken(folders) -> None:
    text = claude("Stop", hook("true"), id="check")
    theirs, ours = folders({"a/guard.json": text, "b/guard.json": text})
    assert [e.files for e in import_hooks(theirs, ours).imported] == [
        ["manifests/hooks/guard.yaml"], ["manifests/hooks/guard-2.yaml"],
    ]  # fmt: skip
    assert "id: check-2" in manifest(ours, "guard-2")
    assert compiles(ours) == []
    assert [e.outcome for e in import_hooks(theirs, ours).imported] == ["unchanged", "unchanged"]


def test_scripts_come_along_and_are_named_from_the_root(folders) -> None:
    files = {
        "bun/hooks/hooks.json": claude("PreToolUse", hook("bash ${CLAUDE_PLUGIN_ROOT}/hooks/scripts/check.sh --fast")),
        "bun/hooks/scripts/check.sh": '#!/bin/bash\r\n. "$CLAUDE_PLUGIN_ROOT/hooks/scripts/lib.sh"\r\n',
        "bun/hooks/scripts/lib.sh": "echo $API_KEY\n",
        "bun/hooks/scripts/other.sh": "exit 1\n",
    }
    entry, root = only(folders, files)
    assert entry.files == [
        "manifests/hooks/bun/hooks/scripts/check.sh",
        "manifests/hooks/bun/hooks/scripts/lib.sh",
        "manifests/hooks/bun.yaml",
    ]
    text = manifest(root, "bun")
    assert "bash manifests/hooks/bun/hooks/scripts/check.sh --fast" in text
    assert 'export CLAUDE_PLUGIN_ROOT="$PWD/manifests/hooks/bun"' in text
    assert "files:" in text
    assert (root / "manifests/hooks/bun/hooks/scripts/check.sh").read_bytes().count(b"\r") == 0
    assert "bun-pre-tool reads API_KEY from the environment" in messages(entry, "not carried over")[0]


@pytest.mark.parametrize(
    "command",
    [
        '"${CLAUDE_PLUGIN_ROOT}/run.cmd" session-start',
        '"$CLAUDE_PROJECT_DIR"/run.cmd x',
        "./run.cmd",
        "python3 scripts/run.py --x",
        "node scripts/run.js",
        "bash -c 'true' && $CLAUDE_PROJECT_DIR/scripts/run.py",
        ["python3", "scripts/run.py"],
    ],
)
def test_ways_to_name_a_script(folders, command) -> None:
    files = {
        "guard.json": claude("Stop", hook(command)),
        "run.cmd": "echo hello\n",
        "scripts/run.py": "print(1)\n",
        "scripts/run.js": "console.log(1)\n",
    }
    entry, root = only(folders, files)
    assert entry.outcome == "imported"
    assert len(entry.files) == 2
    assert "manifests/hooks/guard/" in manifest(root)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("bash ${CLAUDE_PLUGIN_ROOT}/gone.sh", "it needs gone.sh, which is not among the files given"),
        ("python3 .claude/hooks/gone.py", "it needs .claude/hooks/gone.py, which is not among the files given"),
        ("node -e \"require(process.env.CLAUDE_PLUGIN_ROOT+'/x'); 'scripts/a.js'\"", "it needs scripts/a.js"),
        ("python3 ~/.claude/hooks/x.py", "it runs ~/.claude/hooks/x.py, a file in somebody's home folder"),
        ("bash ../../outside.sh", "it needs ../../outside.sh"),
        ("bash bin.sh", "its file bin.sh is not UTF-8 text"),
        ("bash link.sh", "it needs link.sh"),
    ],
)
def test_scripts_that_are_not_there(folders, tmp_path: Path, command: str, reason: str) -> None:
    (tmp_path / "outside.sh").write_text("true\n")
    theirs, ours = folders({"guard.json": claude("Stop", hook(command)), "bin.sh": b"\xff\xfe"})
    (theirs / "link.sh").symlink_to(tmp_path / "outside.sh")
    entry = import_hooks(theirs, ours).refused[0]
    assert f"Stop: {reason}" in entry.reason


def test_bash_is_run_where_it_is_meant(folders) -> None:
    command = "if [[ -n \"$HOOK_URL\" ]]; then echo 'don''t'; fi"
    entry, root = only(folders, {"guard.json": claude("Stop", hook(command))})
    assert f"        run:\n          - bash\n          - -c\n          - |\n            {command}\n" in manifest(root)
    assert "reads HOOK_URL from the environment" in messages(entry, "not carried over")[0]


def test_unicode_and_long_lines_stay_as_they_are(folders) -> None:
    command = "echo '🔔 " + "価格 " * 500 + '\' "quoted"'
    _, root = only(folders, {"guard.json": claude("Stop", hook(command))})
    assert command in manifest(root)


def test_settings_keep_only_their_hooks(folders) -> None:
    text = json.dumps({"permissions": {}, "env": {"A": "b"}, "hooks": {"Stop": [{"hooks": [hook("true")]}]}}, indent=1)
    entry, _ = only(folders, {"acme/.claude/settings.json": text})
    assert entry.files == ["manifests/hooks/acme.yaml"]
    assert "what is not hooks: permissions, env" in messages(entry, "not carried over")[0]


def test_cursor(folders) -> None:
    hooks = {
        "beforeSubmitPrompt": [{"command": "check-prompt --fast"}],
        "stop": [{"command": 'echo \'{"permission": "deny"}\''}],
        "afterFileEdit": [{"command": "fmt"}],
    }
    entry, root = only(folders, {"acme/.cursor/hooks.json": json.dumps({"version": 1, "hooks": hooks})})
    assert "event: input" in manifest(root, "acme-cursor")
    assert [m.partition(": ")[2] for m in messages(entry, "not carried over")] == [
        "stop: it answers with Cursor's `permission`, which no protocol here reads",
        "afterFileEdit: it is about files, shells and editors of a coding agent, which this project's agent does not have",
    ]
    assert any("Cursor's programs get Claude Code's fields" in m for m in messages(entry, "warning"))


def test_gemini_counts_milliseconds(folders) -> None:
    _, root = only(folders, {"guard.json": claude("BeforeTool", hook("true", timeout=2500))})
    assert "timeout_s: 2.5\n" in manifest(root)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON: 1:2: Expecting property name enclosed in double quotes"),
        ('{\n // c\n "hooks": {}}', "not JSON: 2:2: Expecting property name enclosed in double quotes; got '// c'"),
        ("[]", "it is no object with a `hooks` key"),
        ('{"hooks": {}}', "its `hooks` are empty"),
        ('{"hooks": []}', "its `hooks` are list, not a mapping of events"),
        ('{"events": [], "description": "x"}', "it has no `hooks` key, which is where agents look; its keys: events"),
        ('{"mcpServers": {}}', "it is a map of MCP servers, not hooks: see `harnessctl import mcp`"),
        ('{"$schema": "x", "properties": {}}', "it is a JSON Schema of hook files, not a hook file"),
        ('{"hooks": {"Stop": {}}}', "its only hook cannot be carried over: Stop: not a list"),
        (
            '{"hooks": {"Stop": ["x", {"hooks": ["y"]}]}}',
            "none of its 2 hooks can be carried over: Stop: not an object",
        ),
        ('{"x": NaN}', "not JSON that can be read: NaN is not JSON"),
        ("[" * 3000 + "]" * 3000, "not JSON that can be read"),
        ('{"hooks": ' + '{"a":' * 60 + "1" + "}" * 60 + "}", "its values are nested more than 50 levels deep"),
        (b'{"hooks": "\xff"}', "line 1 is not UTF-8 text"),
    ],
    ids=range(14),
)
def test_what_is_refused_and_why(folders, text, reason: str) -> None:
    theirs, ours = folders({"guard.json": text})
    before = contents(ours)
    (entry,) = import_hooks(theirs, ours).entries
    assert entry.outcome == "refused"
    assert entry.reason.startswith(reason)
    assert contents(ours) == before


def test_nothing_is_overwritten_unless_forced(folders) -> None:
    theirs, ours = folders({"guard.json": claude("Stop", hook("true"))})
    import_hooks(theirs, ours)
    (theirs / "guard.json").write_text(claude("Stop", hook("false")))
    (entry,) = import_hooks(theirs, ours).refused
    assert entry.reason == "manifests/hooks/guard.yaml exists with other content; --force replaces it"
    (entry,) = import_hooks(theirs, ours, force=True, dry_run=True).imported
    assert 'shell: "true"' in manifest(ours)
    (entry,) = import_hooks(theirs, ours, force=True).imported
    assert 'shell: "false"' in manifest(ours)
    assert "manifests/hooks/guard.yaml existed with other content and is replaced" in messages(entry, "changed")[0]


def test_a_description_becomes_a_comment(folders) -> None:
    text = json.dumps(
        {"description": "Checks\n" + "all the things " * 12, "hooks": {"Stop": [{"hooks": [hook("true")]}]}}
    )
    _, root = only(folders, {"guard.json": text})
    assert manifest(root).startswith("# Checks all the things all the things")
    assert all(line.startswith("#") for line in manifest(root).split("apiVersion")[0].splitlines())


def test_an_imported_script_runs_from_the_bundle(folders, tmp_path: Path) -> None:
    files = {
        "bun/hooks/hooks.json": claude("PreToolUse", hook('"${CLAUDE_PLUGIN_ROOT}"/hooks/check --now')),
        "bun/hooks/check": '. "$CLAUDE_PLUGIN_ROOT/hooks/lib.sh"\nsay "no $1" >&2\nexit 2\n',
        "bun/hooks/lib.sh": 'say() { echo "$@"; }\n',
    }
    entry, root = only(folders, files)
    assert entry.outcome == "imported"
    state = load_side(str(root)).state
    command = state.hooks[0].check["command"]
    folder = Layout(state.files).folder()
    finished = Command(run=command.get("run"), shell=command.get("shell")).run(
        b"{}",
        folder=folder,
        extra={"CLAUDE_PROJECT_DIR": str(folder)},
        deadline=time.monotonic() + 20,
        cancelled=threading.Event(),
    )
    assert (finished.code, finished.stderr) == (2, "no --now")
