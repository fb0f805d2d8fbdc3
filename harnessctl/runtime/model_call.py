"""Model call: one answer from the policy, with other tries where an endpoint's failure may pass.

What always holds: no wait reaches past the deadline; a failure is kept in the record and never raised; every call that
was begun has a ModelCall, a cancelled one too.
"""

from __future__ import annotations

import zlib

import msgspec

from harnessctl.errors import ModelError
from harnessctl.records.trajectory import ModelCall
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.ending import Ending
from harnessctl.runtime.foreign import must_pass, said
from harnessctl.runtime.protocols import Model, ModelReply, ModelRequest, Sampling
from harnessctl.runtime.reasoning import split_reasoning
from harnessctl.runtime.request import RequestRun
from harnessctl.runtime.surface import SurfaceView

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0


def wait_before(attempt: int, asked: float | None, jitter: float) -> float:
    """Seconds before the try after the `attempt`-th (from 1).

    What the endpoint asked for, else exponential back-off with full jitter over its upper half: all clients that
    failed at one moment do not come back at one moment. `jitter` is in [0, 1).
    """
    if asked is not None:
        return asked
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1))
    return longest * (0.5 + 0.5 * jitter)


class ModelCaller:
    """Asks one model on behalf of one bundle's requests."""

    def __init__(self, model: Model, surface: SurfaceView, clock: Clock) -> None:
        state = surface.state
        self._model = model
        self._tools = surface.tools
        self._load_skill = surface.tool_name(surface.load_skill.name) if surface.load_skill else None
        self._reply_schema = (state.reply_schema or {}) if state.reply_format == "json" else None
        self._clock = clock

    async def call(self, run: RequestRun, *, insist: bool = False) -> ModelReply | Ending:
        """The next answer, with its reasoning apart from its content; an Ending when there is none to be had.

        `insist`: the answer must be a call of the tool that loads skills.
        """
        scene, monotonic = run.scene, self._clock.monotonic
        now = monotonic()
        call = ModelCall(round=scene.round, seen=len(run.messages), started_s=now - scene.started, ended_s=0.0)
        run.calls.append(call)
        if now >= scene.deadline:
            call.error = "the deadline had passed before the model was asked"
            call.ended_s = call.started_s
            return Ending("deadline", error=call.error)
        request = ModelRequest(
            messages=run.messages,
            tools=self._tools,
            sampling=_sampling(run, len(run.calls)),
            deadline=scene.deadline,
            prefix_ids=run.paths.prefix_ids,
            prefix_messages=run.paths.prefix_messages,
            cache_key=run.prompt_digest or "",
            stable=1 if run.system else 0,
            tool_choice=self._load_skill if insist and self._load_skill else "auto",
            reply_schema=self._reply_schema,
            request_id=run.request.id,
        )
        try:
            while True:
                try:
                    answer = await self._model.complete(request)
                    break
                except ModelError as error:
                    ending = await self._wait(run, call, error)
                    if ending is not None:
                        call.error = ending.error
                        return ending
        except BaseException as error:  # a model that breaks its Protocol ends this request and no other
            if must_pass(error):
                call.error = "cut off"
                raise
            call.error = f"{type(error).__name__}: {said(error)}"
            return Ending("model_error", error=call.error)
        finally:
            call.ended_s = monotonic() - scene.started
        call.usage = answer.usage
        call.ttft_s = answer.ttft_s
        call.finish_reason = answer.finish_reason
        scene.warnings += run.paths.record(answer, call, len(run.messages) + 1)
        if answer.content and "think>" in answer.content:
            answer = _apart(answer)
        call.reasoning = answer.reasoning
        return answer

    async def _wait(self, run: RequestRun, call: ModelCall, error: ModelError) -> Ending | None:
        """Wait before another try; an Ending when there is to be none."""
        scene, clock = run.scene, self._clock
        failure = error.render().removeprefix("error: ")
        if clock.monotonic() >= scene.deadline:
            return Ending("deadline", error=failure)
        if not error.retryable or call.attempts > int(scene.limits["model_retries"]):
            return Ending("model_error", error=failure)
        wait = wait_before(call.attempts, error.retry_after, run.jitter())
        if clock.monotonic() + wait >= scene.deadline:
            return Ending("deadline", error=f"{failure}; another try would come after the deadline")
        call.error = failure
        await clock.sleep(wait)
        call.error = None
        call.attempts += 1
        return None


def _apart(answer: ModelReply) -> ModelReply:
    """The answer with reasoning that stands in its content set apart; the model's own object is left as it is."""
    said, thought = split_reasoning(answer.content or "")
    if thought is None:
        return answer
    reasoning = f"{answer.reasoning}\n{thought}" if answer.reasoning else thought
    return msgspec.structs.replace(answer, content=said, reasoning=reasoning)


def _sampling(run: RequestRun, number: int) -> Sampling:
    """The run's sampling; a given seed is made this request's and this call's own, the same in every run."""
    sampling = run.sampling
    if sampling.seed is None:
        return sampling
    seed = zlib.crc32(f"{sampling.seed}:{run.request.id}:{number}".encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
    return msgspec.structs.replace(sampling, seed=seed)
