"""MCP tools against real servers over stdio and streamable HTTP, good and bad: every fault is an outcome."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_servers
import pytest
from aiohttp import web

from harnessctl.errors import ToolError
from harnessctl.manifests.specs.tools import McpServer
from harnessctl.runtime.tools.mcp import discover
from harnessctl.runtime.tools.outcome import ToolOutcome
from harnessctl.runtime.tools.toolset import ToolSet

pytest.importorskip("mcp")

TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}


class ByHand:
    """The server written by hand, its starts, and calls of its tools."""

    def __init__(self, bench: Any, folder: Path) -> None:
        self._bench = bench
        self._starts = folder / "starts"
        (folder / "server.py").write_text(mcp_servers.BY_HAND)
        self.spec: dict[str, Any] = {
            "command": sys.executable,
            "args": [str(folder / "server.py")],
            "env": {"STARTS": str(self._starts), "KEY": "${KEY:-none}"},
        }

    def pids(self) -> list[int]:
        return [int(line) for line in self._starts.read_text().split()] if self._starts.exists() else []

    def running(self) -> list[int]:
        return [pid for pid in self.pids() if Path(f"/proc/{pid}").exists()]

    def tool(self, name: str, **fields: Any) -> Any:
        return self._bench.tool(name, run={"mcp": {"server": "hand"}}, **fields)

    def use(self, job: Callable[[ToolSet, Any], Awaitable[Any]], *tools: Any, **options: Any) -> Any:
        """What `job` gives with an open tool set; no process is left afterwards."""
        toolset = self._bench.make(*tools, servers={"hand": self.spec}, **options)

        async def opened() -> Any:
            await toolset.open()
            try:
                return await job(toolset, self._bench.ctx())
            finally:
                await toolset.aclose()

        result = asyncio.run(opened())
        assert self.running() == []
        return result

    def call(
        self, name: str, args: dict[str, Any] | None = None, *, timeout_s: float = 10.0, **fields: Any
    ) -> ToolOutcome:
        options = {key: fields.pop(key) for key in ("env",) if key in fields}
        tool = self.tool(name, **fields)
        return self.use(lambda toolset, ctx: toolset.call(tool, args or {}, ctx, timeout_s), tool, **options)


@pytest.fixture
def hand(bench: Any, tmp_path: Path) -> ByHand:
    return ByHand(bench, tmp_path)


def test_mcp_server_time_answers_over_one_process(bench: Any) -> None:
    tool = bench.tool("now", run={"mcp": {"server": "time", "tool": "get_current_time"}})
    toolset = bench.make(tool, servers={"time": TIME})

    async def calls() -> list[ToolOutcome]:
        await toolset.open()
        zones = ["Asia/Shanghai", "Europe/London", "Nowhere/Else"]
        outcomes = await asyncio.gather(*(toolset.call(tool, {"timezone": zone}, bench.ctx(), 10.0) for zone in zones))
        await toolset.aclose()
        return outcomes

    shanghai, london, nowhere = asyncio.run(calls())
    assert toolset.warnings == []
    assert (shanghai.status, shanghai.result["timezone"]) == ("ok", "Asia/Shanghai")
    assert london.result["timezone"] == "Europe/London"
    assert nowhere.status == "error"
    assert "Invalid timezone" in nowhere.error


def test_discover_lists_what_a_server_offers_in_order() -> None:
    tools = asyncio.run(discover("time", McpServer(**TIME)))
    assert [tool["name"] for tool in tools] == ["convert_time", "get_current_time"]
    assert tools[1]["inputSchema"]["required"] == ["timezone"]
    assert tools[1]["description"] == "Get current time in a specific timezone"
    assert json.loads(json.dumps(tools)) == tools


def test_discover_reads_every_page(hand: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [{"name": name, "inputSchema": {"type": "object"}} for name in "cab"]
    monkeypatch.setenv("OFFERED", json.dumps(offered))
    spec = {**hand.spec, "env": {**hand.spec["env"], "TOOLS": "${OFFERED}"}}
    assert asyncio.run(discover("hand", spec)) == sorted(offered, key=lambda tool: tool["name"])
    assert hand.running() == []


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("echo", '{"a": 1}'),
        ("structured", {"n": 1}),
        ("parts", "Two\n[image image/png, 3 bytes]\n[link file:///a: a]\ninside\n[resource file:///c (x/y), 4 bytes]"),
        ("garbage", "after the garbage"),
    ],
)
def test_answers_of_an_older_server(hand: ByHand, name: str, result: Any) -> None:
    outcome = hand.call(name, {"a": 1})
    assert (outcome.status, outcome.result) == ("ok", result)


def test_text_is_read_as_json_where_the_tool_says_what_its_result_is(hand: ByHand) -> None:
    assert hand.call("echo", {"a": 1}, result={"type": "object"}).result == {"a": 1}
    assert hand.call("echo", {"a": 1}, result={"type": "array"}).status == "error"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails", "There is no such item."),
        ("fails_silently", "the server reports an error and no reason"),
        ("nothing", "the tool gave no result"),
        ("unreadable", "the server's answer cannot be read: content/0"),
        ("unknown", "unknown tool unknown"),
    ],
)
def test_what_goes_wrong_in_a_call_is_an_error(hand: ByHand, name: str, said: str) -> None:
    outcome = hand.call(name)
    assert (outcome.status, outcome.result) == ("error", None)
    assert said in outcome.error


def test_a_very_long_answer_is_cut(hand: ByHand) -> None:
    assert len(hand.call("big").result) == 16_000


def test_a_secret_of_the_environment_is_hidden(hand: ByHand) -> None:
    assert hand.call("secret", env={"KEY": "s3cret-value"}).error == "bad key ***"


def test_calls_run_side_by_side_and_a_hanging_one_is_a_timeout(hand: ByHand) -> None:
    together, hang = hand.tool("together"), hand.tool("hang")

    async def job(toolset: ToolSet, ctx: Any) -> Any:
        late = asyncio.create_task(toolset.call(hang, {}, ctx, 0.05))
        at_once = await asyncio.gather(*(toolset.call(together, {"n": 8}, ctx, 10.0) for _ in range(8)))
        return [outcome.result for outcome in at_once], await late

    results, late = hand.use(job, together, hang)
    assert results == ["together"] * 8
    assert (late.status, late.error) == ("timeout", "no answer within 0.05 s")
    assert len(hand.pids()) == 1


def test_a_server_that_dies_in_a_call_is_started_once_more(hand: ByHand) -> None:
    assert hand.call("die_once").result == "alive"
    assert len(hand.pids()) == 2


def test_a_server_that_always_dies_is_an_error_after_two_starts(hand: ByHand) -> None:
    outcome = hand.call("die")
    assert (outcome.status, outcome.error) == ("error", "the server ended before it answered")
    assert len(hand.pids()) == 2


def test_a_write_in_which_the_server_died_is_not_repeated(hand: ByHand) -> None:
    outcome = hand.call("die", effect="write", retries=3)
    assert outcome.error == "the server ended before it answered; whether it took effect is not known"
    assert (outcome.attempts, len(hand.pids())) == (1, 1)


def test_a_server_that_died_between_two_calls_is_no_fault_of_the_second(hand: ByHand) -> None:
    die, write = hand.tool("die", effect="write"), hand.tool("echo", effect="write")

    async def job(toolset: ToolSet, ctx: Any) -> list[ToolOutcome]:
        return [await toolset.call(tool, {"a": 1}, ctx, 10.0) for tool in (die, write, write)]

    first, second, third = hand.use(job, die, write)
    assert first.status == "error"
    assert (second.result, third.result) == ('{"a": 1}', '{"a": 1}')
    assert len(hand.pids()) == 2


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(1)", "Connection closed"),
        ("import sys; sys.exit('KeyError: no such key')", "Connection closed; it wrote: KeyError: no such key"),
        ("print('garbage'); print('x' * 100_000)", "Connection closed"),
        ("import sys; sys.stdin.read()", "no answer within 0.3 s"),
        ("print('{}' * 3, flush=True); import sys; sys.stdin.read()", "no answer within 0.3 s"),
    ],
)
def test_a_server_that_does_not_start_is_a_warning_and_an_error(bench: Any, code: str, said: str) -> None:
    tool = bench.tool(run={"mcp": {"server": "bad"}})
    servers = {"bad": {"command": sys.executable, "args": ["-c", code]}}
    toolset = bench.make(tool, servers=servers, start_timeout_s=0.3 if said.startswith("no answer") else 30.0)
    outcome = bench.run(toolset, tool)
    assert outcome.error == f"the server could not be started: {said.partition(';')[0]}"
    assert toolset.warnings == [f"MCP server `bad`: the server could not be started: {said}"]


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"command": "no-such-program-here"}, "No such file or directory"),
        ({"command": "/"}, "Permission denied"),
        ({"url": "http://127.0.0.1:9/mcp"}, "All connection attempts failed"),
    ],
)
def test_a_server_that_cannot_be_reached_is_not_asked_again_at_once(bench: Any, server: Any, said: str) -> None:
    tool = bench.tool(run={"mcp": {"server": "bad"}}, retries=2)
    toolset = bench.make(tool, servers={"bad": server})
    assert bench.run(toolset, tool).error == f"the server could not be started: {said}"
    assert len(toolset.warnings) == 1


def test_the_rest_of_a_harness_works_without_its_server(bench: Any) -> None:
    good = bench.tool("good", run={"python": "m:good"})
    bad = bench.tool("bad", run={"mcp": {"server": "bad"}})
    toolset = bench.make(good, bad, code={"m": "def good(): return 1"}, servers={"bad": {"command": "no-such-program"}})
    assert bench.run(toolset, good).result == 1


def test_faults_of_the_set_up_are_raised_at_open_before_anything_starts(bench: Any, hand: ByHand) -> None:
    servers = {
        "hand": hand.spec,
        "a": {"command": "x", "env": {"TOKEN": "${MISSING_TOKEN}"}},
        "b": {"url": "http://127.0.0.1:9/", "headers": {"X": "${ODD}"}},
        "c": {"command": "x", "url": "http://127.0.0.1:9/"},
    }
    tools = [bench.tool(name, run={"mcp": {"server": name}}) for name in servers]
    with pytest.raises(ToolError) as error:
        asyncio.run(bench.make(*tools, servers=servers, env={"ODD": "a\nb"}).open())
    assert error.value.message == (
        "MCP server `a`: not set in the environment: MISSING_TOKEN; "
        "MCP server `b`: the header `X` has a line break in its value; "
        "MCP server `c`: a server has either `command` or `url`"
    )
    assert hand.pids() == []


def test_without_the_package_the_error_says_how_to_install_it(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    tool = bench.tool(run={"mcp": {"server": "time"}})
    with pytest.raises(ToolError) as error:
        asyncio.run(bench.make(tool, servers={"time": TIME}).open())
    assert error.value.message == "MCP server `time`: the package `mcp` is not installed"
    assert error.value.hint == "pip install 'harnessctl[mcp]'"


def test_a_simulated_tool_needs_no_server(bench: Any) -> None:
    tool = bench.tool(run={"mcp": {"server": "bad"}}, simulate={"python": "m:fake"})
    servers = {"bad": {"command": "no-such-program", "env": {"X": "${MISSING}"}}}
    toolset = bench.make(tool, code={"m": "def fake(): return 'fake'"}, servers=servers, simulate=True)
    assert bench.run(toolset, tool).result == "fake"
    assert toolset.warnings == []


@pytest.mark.parametrize("spec", [{"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}, {}])
def test_discover_says_why_a_server_cannot_be_asked(spec: dict[str, Any]) -> None:
    said = "it wrote: no licence" if spec else "a server has either `command` or `url`"
    with pytest.raises(ToolError, match=said) as error:
        asyncio.run(discover("shop", spec))
    assert error.value.message.startswith("MCP server `shop`: ")


def test_closing_while_a_server_starts_leaves_no_process(bench: Any, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"import os, sys; open({str(mark)!r}, 'w').write(str(os.getpid())); sys.stdin.read()"
    tool = bench.tool(run={"mcp": {"server": "slow"}})
    toolset = bench.make(tool, servers={"slow": {"command": sys.executable, "args": ["-c", code]}})

    async def interrupted() -> None:
        opening = asyncio.create_task(toolset.open())
        while not (mark.exists() and mark.read_text()):
            await asyncio.sleep(0.01)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(interrupted())
    assert not Path(f"/proc/{mark.read_text()}").exists()


@contextmanager
def http_server(folder: Path, port: int = 0) -> Iterator[int]:
    """A server over streamable HTTP; gives its port."""
    script = folder / "http_server.py"
    script.write_text(mcp_servers.OVER_HTTP)
    with subprocess.Popen([sys.executable, str(script), str(port)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def test_streamable_http_is_called_found_dead_and_found_again(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnessctl.runtime.tools.mcp_server.RESTART_PAUSE_S", 0.0)
    price, stop = (bench.tool(name, run={"mcp": {"server": "shop"}}) for name in ("price", "stop"))
    headers = {"Authorization": "Bearer ${SHOP_KEY}"}

    async def calls() -> list[ToolOutcome]:
        with http_server(tmp_path) as port:
            shop = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": headers}
            toolset = bench.make(price, stop, servers={"shop": shop}, env={"SHOP_KEY": "s3cret-value"})
            await toolset.open()
            assert toolset.warnings == []
            out = await asyncio.gather(*(toolset.call(price, {"sku": s}, bench.ctx(), 10.0) for s in ("a", "b")))
            out.append(await toolset.call(stop, {"sku": "a"}, bench.ctx(), 10.0))
            out.append(await toolset.call(price, {"sku": "c"}, bench.ctx(), 10.0))
        with http_server(tmp_path, port):
            out.append(await toolset.call(price, {"sku": "d"}, bench.ctx(), 10.0))
            await toolset.aclose()
        return out

    first, second, stopped, dead, again = asyncio.run(calls())
    assert (first.result, second.result) == ({"a": 12}, {"b": 12})
    assert stopped.status == "error"
    assert dead.error == "the server could not be started: All connection attempts failed"
    assert again.result == {"d": 12}


@asynccontextmanager
async def in_process(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """An HTTP server in this process; gives the URL that it answers at."""
    app = web.Application()
    app.router.add_route("*", "/mcp", handler)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}/mcp".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


def test_a_refused_token_is_an_error_that_does_not_tell_it(bench: Any) -> None:
    tool = bench.tool("price", run={"mcp": {"server": "shop"}})

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401, text=request.headers["Authorization"])

    async def call() -> tuple[ToolOutcome, list[str]]:
        async with in_process(refuse) as url:
            shop = {"url": url, "headers": {"Authorization": "Bearer ${SHOP_KEY}"}}
            toolset = bench.make(tool, servers={"shop": shop}, env={"SHOP_KEY": "s3cret-value"})
            await toolset.open()
            outcome = await toolset.call(tool, {"sku": "a"}, bench.ctx(), 5.0)
            await toolset.aclose()
        return outcome, toolset.warnings

    outcome, warnings = asyncio.run(call())
    assert outcome.error == "the server could not be started: Server returned an error response"
    assert "s3cret-value" not in str(warnings)


def test_a_session_that_the_server_forgot_is_begun_again_even_for_a_write(bench: Any) -> None:
    tool = bench.tool("order", effect="write", run={"mcp": {"server": "shop"}})
    sessions: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        match message["method"]:
            case "initialize":
                sessions.append(f"s{len(sessions)}")
                server = {"name": "shop", "version": "1"}
                answer["result"] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": server,
                }
                return web.json_response(answer, headers={"mcp-session-id": sessions[-1]})
            case "tools/list":
                answer["result"] = {"tools": [{"name": "order", "inputSchema": {"type": "object"}}]}
            case "tools/call" if request.headers["mcp-session-id"] == "s0":
                return web.Response(status=404)
            case "tools/call":
                answer["result"] = {"content": [{"type": "text", "text": request.headers["mcp-session-id"]}]}
            case "notifications/initialized":
                return web.Response(status=202)
            case _:
                answer["error"] = {"code": -32601, "message": "method not found"}
        return web.json_response(answer)

    async def call() -> ToolOutcome:
        async with in_process(handler) as url:
            toolset = bench.make(tool, servers={"shop": {"url": url}})
            await toolset.open()
            outcome = await toolset.call(tool, {}, bench.ctx(), 5.0)
            await toolset.aclose()
        return outcome

    assert asyncio.run(call()).result == "s1"


def test_drift_is_a_warning_at_open(hand: ByHand) -> None:
    now = [
        {"name": "echo", "inputSchema": {"type": "object", "properties": {"b": {}}}},
        {"name": "new", "inputSchema": {"type": "object"}},
    ]
    hand.spec |= {"discover": True, "env": {**hand.spec["env"], "TOOLS": json.dumps(now)}}
    echo = hand.tool("echo", parameters={"type": "object", "properties": {"a": {}}})

    async def warnings(toolset: ToolSet, ctx: Any) -> list[str]:
        return toolset.warnings

    assert [text.partition("compiled: ")[2] for text in hand.use(warnings, echo)] == [
        "`echo`: parameter `a` is gone",
        "`echo`: parameter `b` is new",
        "tool `new` is new",
    ]
