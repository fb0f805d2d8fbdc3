"""HTTP tools against a real server: what is sent, what comes back, and what is never followed, read or told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnessctl.errors import ToolError
from harnessctl.runtime.tools import http
from harnessctl.runtime.tools.outcome import ToolOutcome

PARAMETERS = {"type": "object", "properties": {name: {} for name in ("sku", "q", "n", "tags", "note")}}
Handler = Callable[[web.Request], Any]


@asynccontextmanager
async def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server on 127.0.0.1 that answers everything with `handler`; gives its address."""
    app = web.Application()
    app.router.add_route("*", r"/{path:[\s\S]*}", handler)
    runner = web.AppRunner(app, handle_signals=False, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


@pytest.fixture
def exchange(bench: Any) -> Callable[..., ToolOutcome]:
    """One call of an http tool against `handler`; `{base}` in the URL is the server's address."""

    def run(
        handler: Handler, request: dict[str, Any], args: dict[str, Any] | None = None, **options: Any
    ) -> ToolOutcome:
        env = options.pop("env", {})
        call = {key: options.pop(key) for key in ("timeout_s", "ctx") if key in options}

        async def answer(received: web.Request) -> web.StreamResponse:
            made = handler(received)
            made = await made if asyncio.iscoroutine(made) else made
            return made if isinstance(made, web.StreamResponse) else web.json_response(made)

        async def both() -> ToolOutcome:
            async with serving(answer) as base:
                url = request["url"].replace("{base}", base)
                tool = bench.tool(**{"parameters": PARAMETERS, **options, "run": {"http": {**request, "url": url}}})
                toolset = bench.make(tool, env=env)
                await toolset.open()
                try:
                    ctx = call.get("ctx") or bench.ctx()
                    return await toolset.call(tool, args or {}, ctx, call.get("timeout_s", 5.0))
                finally:
                    await toolset.aclose()

        return asyncio.run(both())

    return run


async def echo(request: web.Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.raw_path,
        "body": await request.json() if request.can_read_body else None,
        "auth": request.headers.get("Authorization"),
        "cookies": dict(request.cookies),
    }


@pytest.mark.parametrize(
    ("url", "args", "path"),
    [
        ("{base}/items/{sku}", {"sku": "a/b?c=d#e"}, "/items/a%2Fb%3Fc%3Dd%23e"),
        ("{base}/items/{sku}", {"sku": "价 1"}, "/items/%E4%BB%B7%201"),
        ("{base}/items?q={q}&n={n}", {"q": "a&b=c", "n": 3}, "/items?q=a%26b%3Dc&n=3"),
        ("{base}/items?q={q}&n={n}&v=1", {"n": True, "q": None}, "/items?n=true&v=1"),
        ("{base}/items?q={q}", {}, "/items"),
        ("{base}/商品/{sku}?t={tags}", {"sku": "a", "tags": ["x"]}, "/%E5%95%86%E5%93%81/a?t=%5B%22x%22%5D"),
    ],
)
def test_arguments_in_the_address_are_encoded_and_left_out(
    exchange: Any, url: str, args: dict[str, Any], path: str
) -> None:
    assert exchange(echo, {"url": url}, args).result["path"] == path


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text(max_size=8).filter(lambda text: text not in (".", "..")), min_size=1, max_size=8))
def test_whatever_the_arguments_are_the_server_gets_just_them(bench: Any, values: list[str]) -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        path, _, query = request.raw_path.partition("?")
        seen.append((unquote(path.removeprefix("/items/")), unquote(query.removeprefix("q="))))
        return web.json_response(1)

    async def calls() -> None:
        async with serving(handler) as base:
            tool = bench.tool(parameters=PARAMETERS, run={"http": {"url": base + "/items/{sku}?q={q}"}})
            toolset = bench.make(tool)
            for value in values:
                await toolset.call(tool, {"sku": value, "q": value}, bench.ctx(), 5.0)
            await toolset.aclose()

    asyncio.run(calls())
    assert seen == [(value, value) for value in values]


def test_a_header_of_the_tools_own_replaces_the_usual_one(exchange: Any) -> None:
    request = {"url": "{base}/x", "method": "POST", "body": 1, "headers": {"content-type": "application/x+json"}}
    assert exchange(lambda r: r.headers.getall("Content-Type"), request).result == ["application/x+json"]


@pytest.mark.parametrize("sku", [".", ".."])
def test_an_argument_cannot_climb(exchange: Any, sku: str) -> None:
    assert exchange(echo, {"url": "{base}/items/{sku}/admin"}, {"sku": sku}).status == "invalid"


def test_a_missing_part_of_the_path_is_said(exchange: Any) -> None:
    outcome = exchange(echo, {"url": "{base}/items/{sku}"})
    assert (outcome.status, outcome.error) == ("invalid", "an argument that is part of the address is missing")


def test_a_body_takes_arguments_with_their_types_and_drops_what_is_missing(exchange: Any) -> None:
    body = {
        "sku": "{sku}",
        "n": "{n}",
        "text": "{q}: {n}",
        "list": ["{tags}", "{note}"],
        "note": "{note}",
        "raw": "{other}",
    }
    outcome = exchange(
        echo, {"url": "{base}/x", "method": "POST", "body": body}, {"sku": "a", "n": 2, "q": "价", "tags": ["t"]}
    )
    assert outcome.result["method"] == "POST"
    assert outcome.result["body"] == {"sku": "a", "n": 2, "text": "价: 2", "list": [["t"]], "raw": "{other}"}


def test_headers_take_variables_and_an_answer_never_shows_them(exchange: Any) -> None:
    request = {"url": "{base}/x", "headers": {"Authorization": "Bearer ${SHOP_KEY}"}}
    outcome = exchange(echo, request, env={"SHOP_KEY": "s3cret-value"})
    assert outcome.result["auth"] == "Bearer ***"


def test_an_error_never_shows_them_either(exchange: Any) -> None:
    request = {"url": "{base}/x", "headers": {"Authorization": "Bearer ${SHOP_KEY}"}}
    outcome = exchange(
        lambda r: web.Response(status=500, text=f"bad header {r.headers['Authorization']}"),
        request,
        env={"SHOP_KEY": "s3cret-value"},
    )
    assert outcome.error == "HTTP 500 Internal Server Error: bad header Bearer ***"


def test_missing_variables_are_told_at_open_all_at_once(bench: Any) -> None:
    def tool(name: str, value: str) -> Any:
        return bench.tool(name, run={"http": {"url": "http://127.0.0.1:9/", "headers": {"X": value}}})

    toolset = bench.make(
        tool("a", "${KEY_A}"), tool("b", "${KEY_B} ${KEY_C:-x}"), tool("c", "${D}"), env={"D": "a\r\nb"}
    )
    with pytest.raises(ToolError) as error:
        asyncio.run(toolset.open())
    assert error.value.message == (
        "tool `a`: not set in the environment: KEY_A; tool `b`: not set in the environment: KEY_B; "
        "tool `c`: the header `X` has a line break in its value"
    )


@pytest.mark.parametrize(
    ("answer", "pick", "result"),
    [
        ({"data": {"rows": [1, {"a/b": 2}]}}, "/data/rows/1/a~1b", 2),
        ({"data": 1}, "", {"data": 1}),
        ({"data": 1}, None, {"data": 1}),
        ([False], "/0", False),
    ],
)
def test_a_part_of_the_answer_is_picked(exchange: Any, answer: Any, pick: str | None, result: Any) -> None:
    assert exchange(lambda _: answer, {"url": "{base}/x", "pick": pick}).result == result


@pytest.mark.parametrize(
    ("response", "request_", "fields", "status", "said"),
    [
        ({"text": "<p>no</p>", "content_type": "application/json"}, {}, {}, "error", "the answer is not JSON: "),
        ({"text": "plain"}, {"pick": "/a"}, {}, "error", "it begins: plain"),
        ({"text": '{"a": NaN}', "content_type": "application/json"}, {}, {}, "error", "the answer is not JSON"),
        ({"text": "{}", "content_type": "application/json"}, {"pick": "/a/b"}, {}, "error", "nothing at /a/b"),
        ({"text": ""}, {}, {}, "error", "the tool gave no result (HTTP 200, empty)"),
        ({"status": 204}, {}, {}, "error", "the tool gave no result (HTTP 204, empty)"),
        ({"status": 204}, {}, {"result": {"type": "null"}}, "ok", None),
        ({"text": "no", "status": 404}, {}, {}, "error", "HTTP 404 Not Found: no"),
        ({"text": "x" * 10_000, "status": 400}, {}, {}, "error", "..."),
        ({"status": 401}, {}, {}, "denied", "HTTP 401 Unauthorized"),
        ({"text": "log in", "status": 403}, {}, {}, "denied", "HTTP 403 Forbidden: log in"),
        ({"text": '{"a": "x"}'}, {}, {"result": {"properties": {"a": {"type": "integer"}}}}, "error", "/a"),
    ],
)
def test_bad_answers_are_errors_and_refusals_are_denied(
    exchange: Any,
    response: dict[str, Any],
    request_: dict[str, Any],
    fields: dict[str, Any],
    status: str,
    said: str | None,
) -> None:
    outcome = exchange(lambda _: web.Response(**response), {"url": "{base}/x", **request_}, retries=2, **fields)
    assert outcome.status == status
    assert outcome.error is None if said is None else said in outcome.error
    assert len(outcome.error or "") < 600


def test_text_is_a_result_as_it_is(exchange: Any) -> None:
    assert exchange(lambda _: web.Response(text="价 12"), {"url": "{base}/x"}).result == "价 12"
    odd = web.Response(body="价".encode(), headers={"Content-Type": "text/plain; charset=nothing"})
    assert exchange(lambda _: odd, {"url": "{base}/x"}).result == "价"


def test_ten_megabytes_are_not_read_to_their_end(exchange: Any) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while sent < 100_000_000:
            await response.write(b"x" * 100_000)
            sent += 100_000
        return response

    outcome = exchange(endless, {"url": "{base}/x"})
    assert len(outcome.result) == 16_000
    assert f"of {http.MAX_ANSWER_BYTES} characters" in outcome.result
    assert sent < 20_000_000
    sent = 0
    assert exchange(endless, {"url": "{base}/x", "pick": "/a"}).error == "the answer is longer than 4194304 bytes"


def failing(status: int, times: int, seen: list[str], **response: Any) -> Handler:
    def handler(request: web.Request) -> Any:
        seen.append(request.method)
        return web.Response(status=status, **response) if len(seen) <= times else {"seen": len(seen)}

    return handler


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_passing_fault_is_tried_again_with_back_off(bench: Any, exchange: Any, method: str) -> None:
    outcome = exchange(failing(503, 2, []), {"url": "{base}/x", "method": method}, retries=2)
    assert (outcome.result, outcome.attempts, bench.slept) == ({"seen": 3}, 3, [0.1, 0.2])


def test_the_server_says_how_long_to_wait(bench: Any, exchange: Any) -> None:
    exchange(failing(429, 1, [], headers={"Retry-After": "7"}), {"url": "{base}/x"}, retries=1)
    assert bench.slept == [7.0]
    late = exchange(failing(429, 1, [], headers={"Retry-After": "900"}), {"url": "{base}/x"}, retries=1)
    assert late.attempts == 1


@pytest.mark.parametrize(
    ("status", "fields"),
    [(404, {"retries": 3}), (403, {"retries": 3}), (503, {"retries": 3, "effect": "write"}), (503, {})],
)
def test_what_another_try_cannot_mend_or_might_repeat_is_tried_once(
    exchange: Any, status: int, fields: dict[str, Any]
) -> None:
    seen: list[str] = []
    assert exchange(failing(status, 9, seen), {"url": "{base}/x", "method": "POST"}, **fields).attempts == 1
    assert len(seen) == 1


def test_a_write_that_never_left_may_be_tried_again(bench: Any) -> None:
    tool = bench.tool(
        effect="write", retries=2, run={"http": {"url": "http://127.0.0.1:9/x?token=abc", "method": "POST"}}
    )
    outcome = bench.run(bench.make(tool), tool)
    assert (outcome.status, outcome.attempts) == ("error", 3)
    assert outcome.error.startswith("cannot connect to http://127.0.0.1:9: ")
    assert "token" not in outcome.error


def test_a_server_that_never_answers_is_a_timeout(exchange: Any) -> None:
    async def hang(_: web.Request) -> None:
        await asyncio.Event().wait()

    assert exchange(hang, {"url": "{base}/x"}, timeout_s=0.05).error == "no answer within 0.05 s"


def test_a_cut_answer_is_an_error(exchange: Any) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.close()
        return response

    outcome = exchange(cut, {"url": "{base}/x"})
    assert outcome.status == "error"
    assert outcome.error.endswith("failed: ClientPayloadError")


def redirecting(location: str, status: int = 302, times: int = 1) -> Handler:
    left = times

    async def handler(request: web.Request) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            return web.Response(status=status, headers={"Location": location})
        return await echo(request)

    return handler


def test_a_redirect_within_the_origin_is_followed(exchange: Any) -> None:
    assert exchange(redirecting("/there?a=1"), {"url": "{base}/here"}).result["path"] == "/there?a=1"
    kept = exchange(redirecting("/there", 307), {"url": "{base}/here", "method": "POST", "body": {"n": 1}}).result
    assert (kept["method"], kept["body"]) == ("POST", {"n": 1})
    seen = exchange(redirecting("/there", 303), {"url": "{base}/here", "method": "POST", "body": {"n": 1}}).result
    assert (seen["method"], seen["body"]) == ("GET", None)


@pytest.mark.parametrize(
    ("location", "times", "said"),
    [
        ("http://example.invalid/x", 1, "a redirect to another host, example.invalid, was not followed"),
        ("http://127.0.0.1:1/x", 1, "a redirect to another host, 127.0.0.1, was not followed"),
        ("mailto:a@b.invalid", 1, "a redirect to another host"),
        ("http://[bad", 1, "a redirect to something that is no URL"),
        ("/round", 99, "more than 5 redirects"),
    ],
)
def test_other_redirects_are_errors(exchange: Any, location: str, times: int, said: str) -> None:
    request = {"url": "{base}/x", "headers": {"Authorization": "${KEY}"}}
    outcome = exchange(redirecting(location, times=times), request, env={"KEY": "s3cret-value"})
    assert outcome.status == "error"
    assert said in outcome.error


def test_cookies_are_not_carried_from_one_try_to_the_next(exchange: Any) -> None:
    seen: list[dict[str, str]] = []

    def handler(request: web.Request) -> web.Response:
        seen.append(dict(request.cookies))
        return web.Response(status=503, headers={"Set-Cookie": "viewer=1"})

    exchange(handler, {"url": "{base}/x"}, retries=1)
    assert seen == [{}, {}]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://{sku}.example.invalid/x", "the host in 'http://{sku}.example.invalid/x' must be fixed"),
        ("http://{sku}/x", "must be fixed"),
        ("http://example.invalid/{nope}", "the URL names ['nope'], which are no parameters"),
    ],
)
def test_an_address_that_cannot_be_made_is_a_warning(bench: Any, url: str, said: str) -> None:
    toolset = bench.make(bench.tool(parameters=PARAMETERS, run={"http": {"url": url}}))
    assert said in toolset.warnings[0]


def test_many_calls_share_one_connection_pool(bench: Any) -> None:
    peers: set[Any] = set()

    async def both() -> list[str]:
        async def handler(request: web.Request) -> web.Response:
            peers.add(request.transport.get_extra_info("peername"))
            return web.json_response({"n": request.query["n"]})

        async with serving(handler) as base:
            tool = bench.tool(parameters=PARAMETERS, run={"http": {"url": base + "/x?n={n}", "pick": "/n"}})
            toolset = bench.make(tool)
            await toolset.open()
            one_by_one = [await toolset.call(tool, {"n": n}, bench.ctx(), 5.0) for n in range(5)]
            at_once = await asyncio.gather(*(toolset.call(tool, {"n": n}, bench.ctx(), 5.0) for n in range(20)))
            await toolset.aclose()
        return [outcome.result for outcome in [*one_by_one, *at_once]]

    assert asyncio.run(both()) == [str(n) for n in [*range(5), *range(20)]]
    assert len(peers) <= 20
