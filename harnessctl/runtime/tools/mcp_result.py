"""MCP results: what a server's answer says, as one JSON value."""

from __future__ import annotations

from typing import Any

from harnessctl.runtime.tools.outcome import Failure, shorten


def result_value(result: Any) -> Any:
    """The structured content of a `CallToolResult`, else its text; Failure when the server says that it failed.

    Parts that are not text are described in square brackets, in their place.
    """
    text = "\n".join(map(_part, result.content))
    if result.is_error:
        raise Failure("error", shorten(text.strip()) or "the server reports an error and no reason")
    if result.structured_content is not None:
        return result.structured_content
    return text if result.content else None


def _part(part: Any) -> str:
    match part.type:
        case "text":
            return part.text
        case "resource":
            inner = part.resource
            if (text := getattr(inner, "text", None)) is not None:
                return text
            return f"[resource {inner.uri} ({inner.mime_type or 'unknown type'}), {_size(inner.blob)}]"
        case "resource_link":
            return f"[link {part.uri}: {part.title or part.name}]"
        case "image" | "audio":
            return f"[{part.type} {part.mime_type}, {_size(part.data)}]"
        case other:
            return f"[{other}]"


def _size(base64_text: str) -> str:
    """How many bytes a base64 text stands for."""
    return f"{len(base64_text.rstrip('=')) * 3 // 4} bytes"
