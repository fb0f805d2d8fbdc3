"""The tools of a world as an MCP server, with the official client and a real process on the other side."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply

pytest.importorskip("mcp")

PROGRAM = [sys.executable, "-m", "harnessctl", "world", "serve-mcp"]
TOKEN = "a-long-enough-secret"


def over_stdio(shop: Path, job: Callable[[Any], Awaitable[Any]], *arguments: str, mode: str = "auto") -> Any:
    """What `job` gives with a client of a server that is started for it."""
    from mcp import Client, StdioServerParameters, stdio_client

    async def run() -> Any:
        parameters = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], "--project", str(shop), *arguments])
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(parameters, errlog=nowhere), mode=mode) as client:
                return await job(client)

    return asyncio.run(asyncio.wait_for(run(), 30))


@contextmanager
def served_over_http(shop: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running server and its URL."""
    command = [*PROGRAM, "--project", str(shop), "--http", "0", *arguments]
    env = os.environ | {"HARNESSCTL_MCP_TOKEN": TOKEN}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while "serving " not in said:
            said = process.stderr.readline()
            assert said, "the server ended before it was ready"
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", said)
        assert found is not None, said
        yield found[0], process
    finally:
        process.kill()
        process.communicate()


def over_http(url: str, job: Callable[[Any], Awaitable[Any]], *, mode: str = "auto", **headers: str) -> Any:
    from httpx2 import AsyncClient
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> Any:
        async with (
            AsyncClient(headers={"authorization": f"Bearer {TOKEN}"} | headers) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            return await job(client)

    return asyncio.run(asyncio.wait_for(run(), 30))


async def reserve(client: Any) -> int:
    """The number of the reservation that a call makes: 1 in a fresh sandbox."""
    return (await client.call_tool("reserve", {"article": 2})).structured_content["reservation"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_the_harness_s_own_and_failures_are_results(shop: Path, mode: str) -> None:
    from mcp import MCPError

    async def job(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"get_price", "list_articles", "reserve"}
        assert tools["get_price"].description.startswith("Gives the price in yuan")
        assert tools["get_price"].input_schema["required"] == ["article"]
        assert tools["get_price"].annotations.read_only_hint is True
        assert tools["reserve"].annotations.read_only_hint is False

        found = await client.call_tool("get_price", {"article": 1})
        assert (found.is_error, found.structured_content) == (False, {"name": "teapot", "price": 89, "left": 4})
        assert json.loads(found.content[0].text) == found.structured_content
        listed = await client.call_tool("list_articles", {})
        assert json.loads(listed.content[0].text) == ["teapot", "cup", "tray"]

        unknown = await client.call_tool("get_price", {"article": 9})
        assert (unknown.is_error, unknown.content[0].text) == (True, "There is no article 9; call `list_articles`.")
        wrong = await client.call_tool("get_price", {"number": 1})
        assert wrong.is_error
        assert "`number` not known; allowed: `article`" in wrong.content[0].text
        for name in ("load_skill", "nothing"):
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool(name, {})

    over_stdio(shop, job, mode=mode)


def test_each_session_begins_with_a_fresh_world(shop: Path) -> None:
    async def twice(client: Any) -> list[int]:
        return [await reserve(client), await reserve(client)]

    assert over_stdio(shop, twice) == [1, 2]
    assert over_stdio(shop, twice) == [1, 2]


def test_tools_run_in_the_room_that_was_named(shop: Path) -> None:
    async def job(client: Any) -> Any:
        return (await client.call_tool("reserve", {"article": 1})).structured_content["room"]

    assert over_stdio(shop, job) == "main"
    assert over_stdio(shop, job, "--room", "back") == "back"


def test_calls_side_by_side(shop: Path) -> None:
    async def job(client: Any) -> list[int]:
        return await asyncio.gather(*(reserve(client) for _ in range(20)))

    assert sorted(over_stdio(shop, job)) == list(range(1, 21))


def test_http_asks_for_the_token_and_a_local_host(shop: Path) -> None:
    from httpx2 import Client as HttpClient

    with served_over_http(shop) as (url, process):
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        with HttpClient() as http:
            assert http.post(url, json=ask).status_code == 401
            assert http.post(url, json=ask, headers={"authorization": "Bearer wrong"}).status_code == 401
            foreign = {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}
            assert http.post(url, json=ask, headers=foreign).status_code == 421
            big = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * (5 << 20)}}
            assert http.post(url, json=big, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 413
        assert over_http(url, reserve) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_http_sessions_have_sandboxes_of_their_own(shop: Path) -> None:
    with served_over_http(shop) as (url, _):
        assert [over_http(url, reserve, mode="legacy") for _ in range(2)] == [1, 1]
        assert [over_http(url, reserve, **{"harnessctl-session": name}) for name in ("a", "b", "a")] == [1, 1, 2]
        assert [over_http(url, reserve) for _ in range(2)] == [1, 2]


def test_http_takes_more_calls_side_by_side_than_it_has_room_for(shop: Path) -> None:
    """A client opens a connection for each call; what there is no room for waits, and none is turned away."""

    async def many(client: Any) -> set[bool]:
        results = await asyncio.gather(*(client.call_tool("get_price", {"article": 1}) for _ in range(200)))
        return {bool(result.is_error) for result in results}

    with served_over_http(shop) as (url, _):
        assert over_http(url, many, mode="legacy") == {False}


def test_http_knows_the_scheme_of_the_token_in_any_case(shop: Path) -> None:
    from httpx2 import Client as HttpClient

    ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with served_over_http(shop) as (url, _), HttpClient() as http:
        assert http.post(url, json=ask, headers={"authorization": f"bearer  {TOKEN}"}).status_code != 401
        assert http.post(url, json=ask, headers={"authorization": TOKEN}).status_code == 401
        assert http.post(url, json=ask, headers={"authorization": f"Basic {TOKEN}"}).status_code == 401


def test_a_harness_runs_on_the_served_tools(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Another team's harness, whose tool is one of this server's."""
    root = tmp_path_factory.mktemp("other")
    files = {
        "manifests/harness.yaml": (shop / "manifests/harness.yaml").read_text().replace("world: shop\n", ""),
        "manifests/prompts/shop.yaml": (shop / "manifests/prompts/shop.yaml").read_text(),
        "manifests/hooks/shop.yaml": (shop / "manifests/hooks/shop.yaml").read_text(),
        "skills/answer-price/SKILL.md": (shop / "skills/answer-price/SKILL.md").read_text(),
        "skills/small-talk/SKILL.md": (shop / "skills/small-talk/SKILL.md").read_text(),
        "manifests/tools/remote.yaml": f"""\
apiVersion: harnessctl/v1
kind: Tools
mcpServers:
  shop:
    command: {json.dumps(PROGRAM[0])}
    args: {json.dumps([*PROGRAM[1:], "--project", str(shop)])}
tools:
  - name: get_price
    group: retrieval
    description: Gives the price.
    parameters: {{type: object, required: [article], properties: {{article: {{type: integer}}}}}}
    run: {{mcp: {{server: shop}}}}
  - name: list_articles
    group: retrieval
    description: Lists articles.
    parameters: {{type: object, properties: {{}}}}
    run: {{mcp: {{server: shop}}}}
  - name: load_skill
    group: flow-control
    description: Loads a skill by its name.
    parameters: {{type: object, required: [skill], properties: {{skill: {{type: string}}}}}}
    run: {{builtin: load_skill}}
""",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    bundle = read_bundle(compile_project(root).bundles[0].path)
    model = ScriptedModel(
        [
            ScriptedReply(tool_calls=[ScriptedCall(name="load_skill", arguments={"skill": "answer-price"})]),
            ScriptedReply(
                tool_calls=[
                    ScriptedCall(name="get_price", arguments={"article": 3}),
                    ScriptedCall(name="get_price", arguments={"article": 9}),
                    ScriptedCall(name="list_articles", arguments={}),
                ]
            ),
            ScriptedReply(content="The tray is 35 yuan."),
        ]
    )

    async def run() -> Any:
        async with await Agent.open(bundle, model) as agent:
            assert agent.warnings == []
            return await agent.run(CommentInput(id="1", text="How much is the tray?"))

    trajectory = asyncio.run(run())
    assert trajectory.reply == "The tray is 35 yuan."
    price, missing, articles = trajectory.tools[1:]
    assert (price.status, price.result) == ("ok", {"name": "tray", "price": 35, "left": 7})
    assert (missing.status, missing.error) == ("error", "There is no article 9; call `list_articles`.")
    assert articles.result == ["teapot", "cup", "tray"]


def started(shop: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A server with an open pipe to it, which has answered once."""
    process = subprocess.Popen(
        [*PROGRAM, "--project", str(shop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
    answer = said(process, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer["id"] == 1
    return process


def said(process: subprocess.Popen[bytes], message: Any) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_it_ends_with_its_client_and_at_sigterm(shop: Path) -> None:
    process = started(shop)
    process.communicate(timeout=10)
    assert process.returncode == 0
    process = started(shop)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    out, err = process.communicate()
    assert out == b""
    assert b"Traceback" not in err


def test_garbage_is_answered_and_survived(shop: Path) -> None:
    process = started(shop)
    assert process.stdin is not None
    process.stdin.write(b"not json\n\xff\xfe\n[]\n" + b"x" * (5 << 20) + b"\n")
    for _ in range(20):
        answer = said(process, {"jsonrpc": "2.0", "id": 7, "method": "ping"})
        if answer.get("id") == 7:
            break
    assert answer["id"] == 7
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--http", "0"), "HARNESSCTL_MCP_TOKEN"),
        (("--http", "0", "--token-env", "OTHER"), "OTHER"),
        (("nowhere",), "nowhere"),
        (("harness=none",), "none"),
        (("sed=1",), "did you mean seed"),
        (("one", "two"), "one world at a time"),
        (("--context", "[]"), "--context is a JSON object"),
        (("--context", '{"room": 3}'), "room"),
    ],
)
def test_what_cannot_be_served_is_said_before_it_begins(harnessctl, shop: Path, arguments, says) -> None:
    done = harnessctl("world", "serve-mcp", *arguments, cwd=shop)
    assert done.code in (1, 2)
    assert says in done.err
    assert done.out == ""


def test_a_token_of_spaces_is_none(harnessctl, shop: Path, monkeypatch) -> None:
    monkeypatch.setenv("HARNESSCTL_MCP_TOKEN", "  ")
    done = harnessctl("world", "serve-mcp", "--http", "0", cwd=shop)
    assert done.code == 2
    assert "needs a bearer token in HARNESSCTL_MCP_TOKEN" in done.err


def test_a_taken_port_is_said(harnessctl, shop: Path, monkeypatch) -> None:
    import socket

    monkeypatch.setenv("HARNESSCTL_MCP_TOKEN", TOKEN)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = harnessctl("world", "serve-mcp", "--http", str(taken.getsockname()[1]), cwd=shop)
    assert done.code == 2
    assert "cannot listen" in done.err


def test_without_the_package_it_says_how_to_install_it(harnessctl, shop: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    done = harnessctl("world", "serve-mcp", cwd=shop)
    assert done.code == 2
    assert "pip install 'harnessctl[mcp]'" in done.err
