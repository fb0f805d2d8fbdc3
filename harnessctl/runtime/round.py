"""Round: one model call and what follows from it: tool calls, or a proposed reply.

What always holds: a round uses up one of `max_rounds`, whatever came of it; the model's own words enter the messages
as it wrote them, and what hooks make of them is in the scene; nothing is said that the stop hooks did not see, but for
a final tool's fixed text, which its author wrote, and a hook's own fallback.
"""

from __future__ import annotations

from typing import Any

from harnessctl.runtime.clock import Clock
from harnessctl.runtime.ending import Ending, ending_of
from harnessctl.runtime.final import Final
from harnessctl.runtime.hooks import HookSet
from harnessctl.runtime.model_call import ModelCaller
from harnessctl.runtime.notices import EMPTY_MESSAGE, NOT_LET, NOT_RUN, Notices
from harnessctl.runtime.pending import PendingCall
from harnessctl.runtime.protocols import ModelReply
from harnessctl.runtime.reply import ReplyForm
from harnessctl.runtime.request import RequestRun
from harnessctl.runtime.route import Router
from harnessctl.runtime.scene import PASS, Scene, Verdict
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tool_calls import ToolCaller
from harnessctl.runtime.written import CallReader


class Rounds:
    """The agent loop of one bundle."""

    def __init__(
        self,
        surface: SurfaceView,
        models: ModelCaller,
        tools: ToolCaller,
        hooks: HookSet,
        notices: Notices,
        clock: Clock,
        *,
        insist: bool = False,
    ) -> None:
        state = surface.state
        self._models = models
        self._tools = tools
        self._hooks = hooks
        self._notices = notices
        self._clock = clock
        self._reader = CallReader(surface, notices)
        self._form = ReplyForm(state)
        self._router = Router(state)
        self._max_rounds = int(surface.limits["max_rounds"])
        self._needs_skill = state.require_skill == "reply" and any(s.kind == "reply" for s in state.skills)
        self._insist = insist and self._needs_skill
        self._has_pre = hooks.has("pre_model")
        self._has_post = hooks.has("post_model")
        self._has_stop = hooks.has("stop")

    async def run(self, run: RequestRun) -> Ending:
        """Rounds until the request ends."""
        scene = run.scene
        while scene.round < self._max_rounds:
            scene.round += 1
            ending = await self._round(run)
            if ending is not None:
                return ending
        return Ending("round_limit", error=f"{self._max_rounds} rounds (max_rounds) were used up without a reply")

    async def _round(self, run: RequestRun) -> Ending | None:
        scene = run.scene
        if self._has_pre:
            verdict = await self._hooks.run("pre_model", scene)
            if verdict.action == "retry":
                run.messages.append(_told(verdict))
            elif verdict is not PASS and (ending := ending_of(verdict, "pre_model")) is not None:
                return ending
        answer = await self._models.call(run, insist=self._insist and not _has_reply_skill(scene))
        if isinstance(answer, Ending):
            return answer
        calls: list[PendingCall] = []
        if answer.tool_calls:
            now = self._clock.monotonic() - scene.started
            calls = self._reader.read(answer.tool_calls, scene.round, now)
        run.messages.append(_message(answer, calls))
        scene.output = answer.content or ""
        if self._has_post:
            verdict = await self._hooks.run("post_model", scene)
            if verdict.action != "pass":
                apart = verdict.action == "retry" and (not calls or verdict.role != "tool")
                self._tools.refuse_all(run, calls, NOT_LET if apart else verdict.message or NOT_RUN)
                if apart:
                    run.messages.append(_told(verdict))
                return ending_of(verdict, "post_model")
        if calls:
            outcome = await self._tools.run(run, calls)
            return await self._say_final(run, outcome) if isinstance(outcome, Final) else outcome
        return await self._propose(run)

    async def _propose(self, run: RequestRun) -> Ending | None:
        """The model's text as the reply: checked, or sent back, which uses the round."""
        scene = run.scene
        if not scene.output.strip():
            run.messages.append({"role": "user", "content": EMPTY_MESSAGE})
            return None
        if self._needs_skill and not _has_reply_skill(scene):
            run.messages.append({"role": "user", "content": self._notices.need_skill})
            return None
        reply, fault = self._form.check(scene.output)
        if fault is not None:
            run.messages.append({"role": "user", "content": self._notices.reply_format(fault)})
            return None
        scene.reply = reply
        verdict = await self._stop(run)
        if verdict is None:
            if not scene.reply:
                return Ending("silent")
            route = self._router.route(scene)
            return Ending("silent" if route == "silent" else "replied", scene.reply, route)
        return ending_of(verdict, "stop")

    async def _say_final(self, run: RequestRun, final: Final) -> Ending | None:
        """The end by a final tool. Text that holds what the model wrote passes the stop hooks as a reply does."""
        scene = run.scene
        scene.reply = final.reply
        if final.has_arguments:
            verdict = await self._stop(run)
            if verdict is not None:
                return ending_of(verdict, "stop")
        if not scene.reply or final.route == "silent":
            return Ending("silent", scene.reply)
        return Ending("refused", scene.reply, final.route)

    async def _stop(self, run: RequestRun) -> Verdict | None:
        """The stop hooks' verdict, or None when the reply may be said. A retry has its message appended already."""
        if not self._has_stop:
            return None
        verdict = await self._hooks.run("stop", run.scene)
        if verdict.action == "pass":
            return None
        if verdict.action == "retry":
            run.messages.append(_told(verdict))
        return verdict


def _has_reply_skill(scene: Scene) -> bool:
    return any(skill.kind == "reply" for skill in scene.skills)


def _told(verdict: Verdict) -> dict[str, Any]:
    """A hook's message. Where no call is being answered, what was meant for a tool result is said as a user."""
    return {"role": "user" if verdict.role == "tool" else verdict.role, "content": verdict.message}


def _message(answer: ModelReply, calls: list[PendingCall]) -> dict[str, Any]:
    """The model's own message, in OpenAI form."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content or (None if calls else "")}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if calls:
        message["tool_calls"] = [
            {"id": pending.id, "type": "function", "function": {"name": call.name, "arguments": pending.shown}}
            for call, pending in zip(answer.tool_calls, calls, strict=True)
        ]
    return message
