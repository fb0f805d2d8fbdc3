"""The pages on hooks and manifests: every example compiles and runs, and the tables say what the code does.

A fenced block whose first or second line is a comment with a path is that file of a project. Other YAML is a list of
hooks, or a part of one hook (a check, with its event and `when`) that is completed here.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from harnessctl.bundle.files import read_bundle
from harnessctl.bundle.state import HarnessState, Hook, Tool
from harnessctl.cli.main import app
from harnessctl.compile import CompileResult, compile_project
from harnessctl.errors import FaultsError
from harnessctl.manifests.events import EVENT_NAMES, READABLE, RETRY_EVENTS, WRITABLE
from harnessctl.manifests.specs.hooks import ActionName, Check, Event
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.checks.peers import EVENTS as PEER_EVENTS
from harnessctl.runtime.code import Code
from harnessctl.runtime.hooks import HookSet
from harnessctl.runtime.scene import Scene, SessionState
from harnessctl.runtime.surface import SurfaceView

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("hooks", "manifests")

HEADER = "apiVersion: harnessctl/v1\nkind: "
#: What the examples name and do not show.
TOOLS = {
    "catalog": [
        ("get_product", "none", "lookup", "link_id: {type: integer}"),
        ("search_products", "none", "lookup", "query: {type: string}, top_k: {type: integer}"),
    ],
    "marketing": [
        ("find_user_id_by_email", "none", "auth", "email: {type: string}"),
        ("get_order", "none", "lookup", "order_id: {type: string}"),
        ("issue_coupon", "write", "coupon", "value: {type: number}"),
    ],
}


def _tools(entries: list[tuple[str, str, str, str]]) -> str:
    return f"{HEADER}Tools\ntools:\n" + "".join(
        f"  - {{name: {name}, effect: {effect}, tags: [{tag}], description: Does it., "
        f"parameters: {{type: object, properties: {{{properties}}}}}, run: {{python: 'catalog:answer'}}}}\n"
        for name, effect, tag, properties in entries
    )


FIXTURE = {
    "manifests/harness.yaml": (
        f"{HEADER}Harness\nname: live-stream\nversion: 1.0.0\nprompt: host\n"
        "include: {skills: ['*'], tools: ['*'], hooks: ['*']}\n"
        "limits: {max_rounds: 4, reply_max_chars: 80}\nsession: {keep: [calls]}\n"
    ),
    "manifests/prompts/host.yaml": (
        f"{HEADER}PromptPipeline\nname: host\ninputs: {{type: object, properties: {{links: {{type: array}}}}}}\n"
        "blocks: [{id: base, template: You host a room.}]\n"
    ),
    "manifests/prompts/live-judge.yaml": (
        f"{HEADER}PromptPipeline\nname: live-judge\ninputs: {{type: object, properties: {{reply: {{type: string}}}}}}\n"
        "blocks: [{id: base, template: 'Judge: {{ reply }}'}]\n"
    ),
    "manifests/tools/catalog.yaml": _tools(TOOLS["catalog"]),
    "manifests/tools/marketing.yaml": _tools(TOOLS["marketing"]),
    "manifests/tools/catalog.py": "def answer(**arguments):\n    return {}\n\n\nget_product = answer\n",
    "manifests/hooks/outcome.py": "def note(names):\n    return names['reply']\n",
    "manifests/worlds/live-room.yaml": (
        f"{HEADER}World\nname: live-room\nversion: 1.0.0\ntables: {{rooms: {{file: rooms.csv, key: [id]}}}}\n"
        "context:\n  room: {one: true, sql: 'SELECT * FROM rooms WHERE id = :room'}\n  faq: {sql: SELECT * FROM rooms}\n"
    ),
    "manifests/worlds/rooms.csv": "id,title\nr1,Lamps\n",
    "skills/item-qa/SKILL.md": (
        '---\nname: item-qa\ndescription: Answers.\nmetadata: {version: "1.0.0", kind: reply}\n---\n'
        "## Rules\n- Reply in at most 80 characters. {#short limit=reply_max_chars}\n"
    ),
}

Write = Callable[[Mapping[str, str | bytes]], Path]


class Example(NamedTuple):
    """A fenced block: its language, its text and the line of the page that the text begins at."""

    language: str
    text: str
    line: int


def examples(page: str) -> Iterator[Example]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Example(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)


def place_and_text(page: str, example: Example) -> tuple[str, str]:
    """The file that an example is, and its text."""
    if example.language == "markdown":
        name = re.search(r"^name: (.+)$", example.text, re.MULTILINE)
        assert name is not None, f"{page}.md:{example.line}: a skill without a name"
        return f"skills/{name[1]}/SKILL.md", example.text
    named = re.match(r"(?:#!.*\n)?# ([\w./-]+\.\w+)\n", example.text)
    if named is not None:
        return named[1], example.text
    assert example.language == "yaml", f"{page}.md:{example.line}: code that does not begin with the path of its file"
    value = yaml.safe_load(example.text)
    hooks = example.text
    if isinstance(value, dict):
        assert value.keys() <= {"event", "when", "check"}, (
            f"{page}.md:{example.line}: no file, no hooks, no part of a hook"
        )
        rest = "event: stop\n" * ("event" not in value) + "otherwise: {action: block}\n"
        lines = [f"id: line-{example.line}", *(example.text + rest).splitlines()]
        hooks = f"- {lines[0]}\n" + "".join(f"  {line}\n" for line in lines[1:])
    return f"manifests/hooks/{page}-line-{example.line}.yaml", f"{HEADER}Hooks\nhooks:\n{hooks}"


def compiled(page: str, project: Write) -> CompileResult:
    files = FIXTURE | dict(
        place_and_text(page, e) for e in examples(page) if e.language in ("yaml", "python", "markdown")
    )
    root = project(files)
    for path, text in files.items():
        if text.startswith("#!"):
            (root / path).chmod(0o755)
    listed = [{"name": "get_current_time", "description": "The time.", "inputSchema": {"type": "object"}}]
    return compile_project(root, discover=lambda name, spec: listed)


def state_of_page(project: Write) -> HarnessState:
    """The state of the harness that has every hook of the page on hooks."""
    return read_bundle(compiled("hooks", project).path("live-stream")).state


@pytest.mark.parametrize("page", PAGES)
def test_every_example_compiles_without_a_warning(page, project):
    try:
        warnings = compiled(page, project).warnings
    except FaultsError as error:
        pytest.fail(error.render())
    assert [fault.render() for fault in warnings] == []


class _Judge:
    async def judge(self, harness: str, context: dict[str, Any], deadline: float) -> dict[str, Any]:
        return {"accuracy": 1, "effectiveness": 0.5, "reason": ""}


def _scene(hook: Hook, tool: Tool | None) -> Scene:
    scene = Scene(
        request=CommentInput(id="r1", text="how much"),
        context={"links": [{"link_id": 1}]},
        limits={"max_rounds": 4, "reply_max_chars": 80},
        session=SessionState(),
        world=None,
        started=time.monotonic(),
        deadline=time.monotonic() + 60,
        message="how much is my order",
        round=3,
        output="It costs 89 yuan.",
        tool=tool,
        args={"link_id": 1, "value": 5, "query": "lamp", "top_k": 9} if tool is not None else {},
    )
    if hook.event == "post_tool":
        scene.status, scene.result = "ok", "call 13812345678"
    if hook.event in ("stop", "end"):
        scene.reply = scene.output
    return scene


def _run(state: HarnessState, hook: Hook, tool: Tool | None, **changed: Any) -> Scene:
    """The scene after this hook alone has looked at it."""
    scene = _scene(hook, tool)
    for field, value in changed.items():
        setattr(scene, field, value)
    alone = msgspec.structs.replace(state, hooks=[hook])
    hooks = HookSet(alone, code=Code("0" * 64, state.code), surface=SurfaceView(alone), judge=_Judge())

    async def run() -> None:
        await hooks.run(hook.event, scene)
        await hooks.drain()

    asyncio.run(run())
    return scene


def test_every_hook_of_the_page_can_run(project):
    state = state_of_page(project)
    for hook in state.hooks:
        tools = state.tools if hook.event in ("pre_tool", "post_tool") else [None]
        decisions = [decision for tool in tools for decision in _run(state, hook, tool).decisions]
        assert decisions, f"{hook.id} looked at nothing"
        assert [decision.error for decision in decisions if decision.error] == []


def test_what_the_page_says_of_its_own_examples(project):
    state = state_of_page(project)
    hooks = {hook.id: hook for hook in state.hooks}
    tools = {tool.name: tool for tool in state.tools}

    def run(name: str, tool: str | None = None, **changed: Any) -> Scene:
        return _run(state, hooks[name], tools[tool] if tool else None, **changed)

    assert run("signed").reply == "It costs 89 yuan. Order questions: tap the headset."
    assert run("at-most-three", "search_products").args == {"query": "lamp", "top_k": 3}
    assert run("numbers-masked", "get_order").result == "call 138****5678"
    linked = run("no-links", reply="see http://x.example").decisions[0]
    assert (linked.decision, linked.reason) == ("retry", "The reply has a link; say it without.")
    guarded = run("coupon-guard", "issue_coupon", args={"value": 50}).decisions[0]
    assert (guarded.decision, guarded.reason) == ("block", "More than 20 yuan needs a person; say so.")


def _table(first: str) -> list[list[str]]:
    """The rows of the table whose head begins with these cells, without code marks."""
    lines = (DOCS / "hooks.md").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.replace("`", "").startswith(f"| {first} |"))
    rows = []
    for line in lines[at:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")])
    return [rows[0], *rows[2:]]


def test_the_table_of_events_and_actions():
    head, *rows = _table("event | it comes")
    assert set(head[2:]) == set(get_args(ActionName))
    assert [row[0] for row in rows] == list(get_args(Event))
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        event = cells["event"]
        assert cells["rewrite"] == WRITABLE.get(event, "–")
        assert (cells["retry"] != "–") == (event in RETRY_EVENTS)
        assert (cells["block"] != "–") == (cells["stop_loop"] != "–") == (cells["fallback"] != "–") == (event != "end")


def test_the_table_of_names():
    _, *rows = _table("event | targets")
    assert {row[0]: tuple(row[1].split()) for row in rows} == READABLE
    assert {row[0]: tuple(row[2].split()) for row in rows} == EVENT_NAMES


def test_the_table_of_protocols():
    _, *rows = _table("event | claude")
    assert {row[0]: row[1] for row in rows} == PEER_EVENTS["claude"]
    assert {row[0]: row[2] for row in rows} == PEER_EVENTS["gemini"]


def test_every_check_has_an_example(project):
    used: set[str] = set()

    def collect(check: dict[str, Any]) -> None:
        for key, value in check.items():
            used.add(key)
            for inner in value if key in ("all", "any") else [value] if key == "not" else []:
                collect(inner)

    for hook in state_of_page(project).hooks:
        collect(hook.check or {})
    assert used == {name.rstrip("_") for name in Check.__struct_fields__}


def test_the_terminal_prints_the_page():
    result = CliRunner().invoke(app, ["docs", "hooks"])
    assert result.exit_code == 0
    assert result.stdout.rstrip() == (DOCS / "hooks.md").read_text(encoding="utf-8").rstrip()
