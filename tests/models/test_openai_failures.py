"""Endpoints that misbehave: what a person reads, and whether another try may help."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from types import SimpleNamespace

import aiohttp
import orjson
import pytest
from canned_server import Server, ask, completion, delta, http, request, sse

from harnessctl.errors import ModelError
from harnessctl.runtime.models.endpoint import Endpoint
from harnessctl.runtime.models.failure import connection_failure, retry_after_s, shorten
from harnessctl.runtime.models.openai import OpenAIModel

PAGE = "<!doctype html>\n<html><head><title>Bad\n Gateway</title></head><body>nginx</body></html>"


def failure(*answers, **given) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(*answers, **given)
    return caught.value


def failure_at(url: str) -> ModelError:
    async def main():
        model = OpenAIModel(Endpoint(model="m", base_url=url))
        try:
            await model.complete(request())
        finally:
            await model.aclose()

    with pytest.raises(ModelError) as caught:
        asyncio.run(main())
    return caught.value


def shown(error: ModelError) -> str:
    """The message with the endpoint's changing port taken out."""
    message = error.message
    start = message.index("http://127.0.0.1:")
    return message[:start] + "URL" + message[message.index("/v1", start) + 3 :]


def test_429_then_an_answer():
    busy = http('{"error": {"message": "Slow down."}}', status="429 Too Many Requests", headers="retry-after: 3\r\n")

    async def main():
        async with Server(busy, completion({"content": "hi"})) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url))
            with pytest.raises(ModelError) as caught:
                await model.complete(request())
            reply = await model.complete(request())
            await model.aclose()
            return caught.value, reply, server.connections

    error, reply, connections = asyncio.run(main())
    assert (shown(error), error.retryable, error.retry_after) == ("URL answered 429: Slow down.", True, 3.0)
    assert (reply.content, connections) == ("hi", 1)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sun, 99 Nov 2026 11:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers, wait):
    assert retry_after_s(headers, now=1795953600.0) == wait


@pytest.mark.parametrize(
    ("status", "body", "message", "retryable"),
    [
        ("500 Internal Server Error", "{}", "URL answered 500: {}", True),
        ("500 Internal Server Error", "", "URL answered 500: nothing more", True),
        ("503 Service Unavailable", "loading\x1b[31m\n model", "URL answered 503: loading [31m model", True),
        ("502 Bad Gateway", PAGE, "URL answered 502: a web page, 'Bad\\n Gateway'", True),
        ("400 Bad Request", '{"object": "error", "message": "too long"}', "URL answered 400: too long", False),
        ("422 Unprocessable", '{"detail": [{"loc": ["x"]}]}', 'URL answered 422: {"detail": [{"loc": ["x"]}]}', False),
        ("404 Not Found", '{"detail": "Not Found"}', "URL answered 404: Not Found", False),
        ("400 Bad Request", "[" * 100_000, "URL answered 400: " + "[" * 299 + "…", False),
        ("408 Request Timeout", "{", "URL answered 408: {", True),
        (
            "429 Too Many",
            '{"error": {"code": "insufficient_quota", "message": "Pay."}}',
            "URL answered 429: Pay.",
            False,
        ),
    ],
)
def test_statuses(status, body, message, retryable):
    error = failure(http(body, status=status, headers="connection: close\r\n"))
    assert (shown(error), error.retryable) == (message, retryable)


def test_hints():
    assert "key_env" in failure(http("{}", status="401 Unauthorized")).hint
    assert "/v1" in failure(http("{}", status="404 Not Found")).hint


def test_a_redirect_is_not_followed():
    error = failure(http("", status="307 Temporary Redirect", headers="location: http://elsewhere/v1\r\n"))
    assert shown(error) == "URL answered 307: redirects to http://elsewhere/v1"
    assert not error.retryable


def test_no_secret_comes_back(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123")
    monkeypatch.setenv("GATEWAY", "hush-hush")
    said = '{"error": {"message": "Wrong key sk-very-secret-0123 (sk-proj-ab**yz) from hush-hush, Bearer abc.def"}}'
    error = failure(http(said, status="401 Unauthorized"), headers={"X-Gate": "${GATEWAY}"})
    assert shown(error) == "URL answered 401: Wrong key *** (***) from ***, ***"


CALL = {"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"x"'}}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [delta(role="assistant")],
        [delta(content="half a sen")],
        [delta(tool_calls=[CALL])],
    ],
)
def test_a_stream_that_ends_too_early(events):
    error = failure(http(sse(*events), kind="text/event-stream"))
    assert shown(error) == "the stream of URL ended before the reply was finished"
    assert error.retryable


def test_a_connection_cut_in_the_middle_of_a_tool_call():
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    body = sse(delta(tool_calls=[CALL]))

    async def answer(writer):
        writer.write(head + b"%x\r\n" % len(body) + body + b"\r\n")
        await writer.drain()

    error = failure(answer)
    assert (shown(error), error.retryable) == ("the answer of URL was cut off", True)


def test_an_answer_cut_short():
    error = failure(b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{"choices": [')
    assert (shown(error), error.retryable) == ("the answer of URL was cut off", True)


def test_the_endpoint_gives_up_in_the_middle_of_a_stream():
    events = sse(delta(content="half"), {"error": {"message": "out of memory", "code": 500}})
    error = failure(http(events, kind="text/event-stream"))
    assert (shown(error), error.retryable) == ("URL gave up: out of memory", True)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [({"code": 400, "message": "no"}, False), ({"code": 429, "message": "no"}, True), ("no", True)],
)
def test_an_error_in_an_answer_with_status_200(error, retryable):
    found = failure(http(orjson.dumps({"error": error})))
    assert (shown(found), found.retryable) == ("URL gave up: no", retryable)


@pytest.mark.parametrize(
    ("body", "message", "retryable"),
    [
        ('{"choices": [', 'URL answered with broken JSON (Input data was truncated); got {"choices": [', True),
        ("", "URL answered with broken JSON (Input data was truncated); got nothing", True),
        (
            b"\xff\xfe\x00",
            "URL answered with broken JSON (JSON is malformed: invalid character (byte 0)); got ��",
            True,
        ),
        ('{"x": ' + "[" * 99_999, "maximum recursion depth exceeded while deserializing an object", True),
        ("[]", "URL did not answer as chat completions do: Expected `object`, got `array`; got []", False),
        ("{}", "URL did not answer as chat completions do: `choices[0].message` is missing; got {}", False),
        (
            '{"choices": [{"message": {"content": 5}}]}',
            "Expected `str | array | null`, got `int` - at `$.choices[0].message.content`",
            False,
        ),
        ('{"choices": [{"message": {}}], "usage": {"prompt_tokens": -1}}', "`$.usage.prompt_tokens`", False),
        (PAGE, "URL answered with a web page, 'Bad\\n Gateway', not with JSON", False),
    ],
)
def test_answers_that_are_no_chat_completions(body, message, retryable):
    error = failure(http(body))
    assert message in shown(error)
    assert error.retryable == retryable


def test_garbage_between_the_events_of_a_stream():
    error = failure(http(sse(delta(content="a"), "{nonsense"), kind="text/event-stream"))
    assert "broken JSON" in error.message
    assert error.retryable


def test_what_is_not_http():
    error = failure(b"220 smtp.example ESMTP\r\n\r\n")
    assert shown(error).startswith("URL does not answer in HTTP: ")
    assert error.retryable


def test_an_answer_packed_wrongly():
    error = failure(http(b"not gzip at all", headers="content-encoding: gzip\r\n"))
    assert (shown(error), error.retryable) == ("the answer of URL was cut off", True)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_that_does_not_end(kind):
    async def answer(writer):
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b": never ending\n" * 1000)
                await writer.drain()

    error = failure(answer, max_response_bytes=100_000)
    assert shown(error) == "URL answered with more than 100000 bytes"
    assert not error.retryable


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"]
)
def test_a_model_that_never_answers(begin):
    async def answer(writer):
        writer.write(begin)
        await asyncio.Event().wait()

    error = failure(answer, asked=request(seconds=0.03))
    assert shown(error) == "URL did not answer within 0.0 s"
    assert not error.retryable


def test_a_deadline_that_has_passed_asks_nobody():
    error = failure(asked=request(seconds=-1))
    assert error.message == "the deadline had passed before the model was asked"


def test_a_server_that_hangs_up():
    async def answer(writer):
        writer.close()

    error = failure(answer)
    assert (shown(error), error.retryable) == ("the connection to URL broke: Server disconnected", True)


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure_at(f"http://127.0.0.1:{port}/v1")
    assert shown(error).startswith("cannot connect to URL: ")
    assert error.retryable


@pytest.mark.parametrize(("code", "retryable"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)])
def test_a_host_without_an_address(monkeypatch, code, retryable):
    def refuse(*_args, **_kwargs):
        raise socket.gaierror(code, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    error = failure_at("http://model.invalid/v1")
    assert (error.message, error.retryable) == ("the host of http://model.invalid/v1 has no address", retryable)


def test_plain_http_where_tls_was_wanted():
    async def refuse(reader, writer):
        await reader.read(1)
        writer.write(http("speak HTTP", status="400 Bad Request"))
        await writer.drain()
        writer.close()

    async def main():
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            model = OpenAIModel(
                Endpoint(model="m", base_url=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            )
            try:
                await model.complete(request())
            finally:
                await model.aclose()

    with pytest.raises(ModelError) as caught:
        asyncio.run(main())
    assert caught.value.message.startswith("no TLS with https://127.0.0.1:")
    assert not caught.value.retryable


def test_a_certificate_that_is_not_trusted():
    key = SimpleNamespace(host="h", port=443, is_ssl=True, ssl=True)
    cause = ssl.SSLCertVerificationError("self-signed certificate")
    error = connection_failure("https://h/v1", aiohttp.ClientConnectorCertificateError(key, cause), secrets=())
    assert error.message == "the certificate of https://h/v1 is not trusted: ('self-signed certificate',)"
    assert not error.retryable


def test_a_connection_that_is_not_made_in_time():
    error = connection_failure("http://h/v1", aiohttp.ConnectionTimeoutError("x"), secrets=())
    assert (error.message, error.retryable) == ("cannot connect to http://h/v1: no answer in time", True)


def test_text_that_json_cannot_hold():
    error = failure(asked=request("\ud800"))
    assert error.message.startswith("the messages cannot be sent as JSON: ")
    assert not error.retryable


def test_a_request_that_is_cancelled_frees_its_connection():
    async def main():
        begun = asyncio.Event()

        async def answer(writer):
            begun.set()
            await asyncio.Event().wait()

        async with Server(answer, completion({"content": "hi"})) as server:
            model = OpenAIModel(Endpoint(model="m", base_url=server.url, connections=1))
            asking = asyncio.ensure_future(model.complete(request()))
            await begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            reply = await model.complete(request())
            await model.aclose()
            return reply.content

    assert asyncio.run(main()) == "hi"


def test_long_messages_become_one_short_line():
    assert shorten("a\x00b\n\n  c" + "\u202e") == "a b c"
    assert len(shorten("x" * 9999)) == 300
