"""Examples of skills: few-shot exchanges whose calls are checked against the tools that they call."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle import state
from harnessctl.compile.references import text_of
from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.sources import header
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs import skill as specs


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is one of examples."""
    return header(file, data, "Examples", specs.Examples, ("examples",), faults)


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """Nothing of examples is referred to by name."""
    return {"skill": file.name, "place": [file.path, *parsed.place()]}


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """The examples of a skill under `examples`."""
    bound = Bound(state={"examples": []})
    for n, _ in enumerate(parsed.get("examples", default=[])):
        spec = convert(parsed, "Examples", specs.Example, faults, "examples", n, name="Example")
        if spec is None:
            continue
        messages = [
            _message(parsed, message, scope, faults, "examples", n, "messages", k)
            for k, message in enumerate(spec.messages)
        ]
        bound.state["examples"].append(msgspec.to_builtins(messages))
        bound.places[f"skills/{file.name}/examples/{n}"] = [file.path, *parsed.place("examples", n)]
    return bound


def _message(
    document: Document, message: specs.ExampleMessage, scope: Scope, faults: Faults, *at: PathPart
) -> state.ExampleMessage:
    if message.calls and message.role != "assistant":
        faults.add(
            document.fault(
                "example-form",
                f"a message of role {message.role} calls no tools",
                *at,
                "calls",
                key=True,
                got=message.role,
                allowed="assistant",
            )
        )
    if not message.content and not message.calls:
        faults.add(
            document.fault("example-form", "a message says nothing", *at, allowed="content, or calls of the assistant")
        )
    for n, call in enumerate(message.calls):
        _check_call(document, call, scope, faults, *at, "calls", n)
    content: list[Any] = [message.content] if message.content else []
    if message.role == "assistant" and message.content:
        content = text_of(document.passage(*at, "content"), scope, faults)
    return state.ExampleMessage(
        role=message.role, content=content, calls=[msgspec.to_builtins(c) for c in message.calls]
    )


def _check_call(document: Document, call: specs.ExampleCall, scope: Scope, faults: Faults, *at: PathPart) -> None:
    tool = scope.tools.get(call.tool)
    if tool is None:
        faults.add(
            document.fault(
                "tool-unknown",
                "there is no tool of this name",
                *at,
                "tool",
                got=call.tool,
                allowed=listed(scope.tools),
                hint=scope.near(call.tool, scope.tools),
            )
        )
        return
    if tool["builtin"] == "load_skill":
        for value in call.arguments.values():
            if isinstance(value, str) and value not in scope.skills:
                faults.add(
                    document.fault(
                        "skill-unknown",
                        "there is no skill of this name",
                        *at,
                        "arguments",
                        got=value,
                        allowed=listed(scope.skills),
                        hint=scope.near(value, scope.skills),
                    )
                )
        return
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for({"type": "object", **tool["parameters"]}, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return  # the fault is the tool's and is reported there
    for error in validator.iter_errors(call.arguments):
        faults.add(
            document.fault(
                "example-arguments",
                f"the arguments do not fit the tool `{call.tool}`",
                *at,
                "arguments",
                *error.instance_path,
                got=error.message[:120],
            )
        )
