"""`harnessctl render`: the exact prompt for a context."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from harnessctl.cli.options import HarnessName, Json, Project


def render(
    bundle: Annotated[
        str | None, typer.Argument(help="A bundle file or a harness of the project.", show_default=False)
    ] = None,
    text: Annotated[str, typer.Option("--text", "-t", help="What the viewer says.")] = "Hello",
    room: Annotated[
        str | None, typer.Option("--room", help="The room that the world looks up.", show_default=False)
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", "-c", help="More context, as a JSON object.", show_default=False)
    ] = None,
    input_: Annotated[
        str | None, typer.Option("--input", "-i", help="The first request of this file instead.", show_default=False)
    ] = None,
    loop: Annotated[Literal["harness", "react"], typer.Option("--loop", help="Which loop's prompt.")] = "harness",
    harness: HarnessName = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Print the exact prompt for a request.

    Messages and tools as a model would be given them, before any hook.
    """
    from contextlib import ExitStack

    import orjson

    from harnessctl.assembly import open_world_of
    from harnessctl.cli import output
    from harnessctl.cli.project import open_bundle
    from harnessctl.cli.rendering import one_request
    from harnessctl.runtime.render import render_request

    found, root = open_bundle(bundle, project, harness=harness)
    request = one_request(text, room=room, context=context, path=input_)
    with ExitStack() as opened:
        world = open_world_of(root, found, None)
        if world is not None:
            opened.enter_context(world)
        messages, tools = render_request(found, request, world=world, loop=loop)
    if json:
        output.json_data({"messages": messages, "tools": tools})
        return
    for message in messages:
        output.data(f"[{message['role']}]\n{message['content']}\n")
    output.data("[tools]")
    for tool in tools:
        output.data(orjson.dumps(tool).decode())
