"""Rendering without a model: what a request's first call would carry."""

from __future__ import annotations

from typing import Any

from harnessctl.bundle import Bundle
from harnessctl.errors import UsageError
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Loop, loop_state
from harnessctl.runtime.context import ContextError, ContextReader
from harnessctl.runtime.prompt import PromptError, PromptView
from harnessctl.runtime.protocols import World
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.viewer import clean_messages


def render_request(
    bundle: Bundle, request: CommentInput, *, world: World | None = None, loop: Loop = "harness"
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(messages, tools) of the first model call for `request`, in surface names, before any hook.

    UsageError when the request's context does not fit the prompt's inputs.
    """
    surface = SurfaceView(loop_state(bundle, loop))
    state = surface.state
    viewer = clean_messages(request, int(surface.limits["max_message_chars"]), [])
    prompt = PromptView(state, surface)
    try:
        context = ContextReader(state.prompt).read(request, world)
        system, user = prompt.system(context, viewer), prompt.user(context, viewer)
    except ContextError as error:
        raise UsageError(str(error), hint="give what is missing with --room or --context") from error
    except PromptError as error:
        raise UsageError(error.message, hint=error.hint) from error
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": user}], surface.tools
