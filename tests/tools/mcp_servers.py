"""MCP servers for the tests: one written by hand in the older protocol, which can misbehave, and one over HTTP."""

from __future__ import annotations

#: Speaks 2025-06-18 over stdio and nothing newer. Appends a line to the file in STARTS each time it is started.
BY_HAND = """
import json, os, sys

with open(os.environ["STARTS"], "a") as file:
    file.write(f"{os.getpid()}\\n")
waiting = []

def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}

def call(id, name, args):
    if name == "echo":
        return text(json.dumps(args))
    if name == "structured":
        return text("as text", structuredContent={"n": args.get("n", 1)})
    if name == "fails":
        return text("There is no such item.", isError=True)
    if name == "fails_silently":
        return {"content": [], "isError": True}
    if name == "nothing":
        return {"content": []}
    if name == "parts":
        return {"content": [
            {"type": "text", "text": "Two"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAAAA==", "mimeType": "x/y"}},
        ]}
    if name == "big":
        return text("x" * 3_000_000)
    if name == "secret":
        return text("bad key " + os.environ["KEY"], isError=True)
    if name == "unreadable":
        return {"content": [{"type": "nonsense"}]}
    if name == "die":
        sys.stderr.write("out of memory\\n")
        os._exit(1)
    if name == "die_once":
        with open(os.environ["STARTS"]) as file:
            if len(file.readlines()) == 1:
                os._exit(1)
        return text("alive")
    if name == "garbage":
        print("this is not JSON")
        print('{"jsonrpc": "2.0", "id": "nobody", "result": {}}')
        return text("after the garbage")
    if name == "hang":
        return None
    if name == "together":
        waiting.append(id)
        if len(waiting) == args["n"]:
            for each in waiting:
                say({"id": each, "result": text("together")})
        return None
    raise LookupError(name)

TOOLS = json.loads(os.environ.get("TOOLS", '[{"name": "echo", "inputSchema": {"type": "object"}}]'))
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if id is None:
        continue
    if method == "initialize":
        server = {"name": "by-hand", "version": "1"}
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}})
    elif method == "tools/list":
        first = not params.get("cursor")
        page = TOOLS[:1] if first else TOOLS[1:]
        say({"id": id, "result": {"tools": page, **({"nextCursor": "2"} if first and len(TOOLS) > 1 else {})}})
    elif method == "tools/call":
        try:
            result = call(id, params["name"], params.get("arguments") or {})
        except LookupError as error:
            say({"id": id, "error": {"code": -32602, "message": f"unknown tool {error}"}})
        else:
            if result is not None:
                say({"id": id, "result": result})
    else:
        say({"id": id, "error": {"code": -32601, "message": "method not found"}})
"""

#: Streamable HTTP with the mcp package's own server; prints its port. Asks for a bearer token.
OVER_HTTP = '''
import os, socket, sys
import uvicorn
from mcp.server import MCPServer

server = MCPServer("shop")

@server.tool()
def price(sku: str) -> dict[str, int]:
    """The price of an item."""
    return {sku: 12}

@server.tool()
def stop(sku: str) -> str:
    """Ends the server."""
    os._exit(0)

inner = server.streamable_http_app()

async def app(scope, receive, send):
    if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != b"Bearer s3cret-value":
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})
    else:
        await inner(scope, receive, send)

sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind(("127.0.0.1", int(sys.argv[1])))
sock.listen()
print(sock.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[sock])
'''
