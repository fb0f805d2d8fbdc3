"""Trimming: a trajectory with retries becomes one that was right at once [3.4, stage 1].

The policy is to correct itself when it is reminded, but not to err first and rely on the reminder. So from most
trajectories what failed (`data.failures`) is taken out, with the reminder that came of it, and from a few it is not.

Nothing is rendered anew: templates render a message without sight of the others, so that the context of an output that
stays is what stood before the first failed output after the last good one. Only a message of which some calls failed and
others did not has to be written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harnessctl.data.encoding import ChatEncoder
from harnessctl.data.failures import Failure, failures_of
from harnessctl.data.outputs import Output, outputs_of
from harnessctl.errors import TrainingError
from harnessctl.records.trajectory import HookDecision, ModelCall, TokenPath, Trajectory

Messages = list[dict[str, Any]]


def trim_retries(trajectory: Trajectory, *, keep: bool, encoder: ChatEncoder | None = None) -> Trajectory:
    """The trajectory as it is to be learnt from; the very object where nothing failed.

    `keep` leaves it whole: the policy reads its failed outputs and the reminders, and learns what it did then. The
    failed outputs themselves are masked out, all tokens of a message of which any call failed.

    Otherwise failed outputs are gone from messages, calls, tools, hooks and ids. Where some calls of a message failed,
    `encoder` writes it again without them; without an encoder (or where the reminders cannot be told apart) the message
    stays as context, masked out. Log-probabilities behind the first change are 0: nobody sampled there. Scores, usage and
    times are those of the whole. Where the request ended by a failure, the rest has no end; where all failed, no token is
    left to learn from.

    RecordError where the trajectory contradicts itself; TrainingError where outputs that failed have no ids, or stand in
    several paths, whose contexts were rendered anew and cannot be joined.
    """
    outputs = outputs_of(trajectory)
    failures = failures_of(trajectory, outputs)
    if not failures:
        return trajectory
    if keep:
        return _masked(trajectory, [outputs[place] for place in failures])
    paths = {output.path for output in outputs}
    if paths != {0}:
        what = "have no token ids" if None in paths else f"stand in {len(paths)} token paths"
        raise TrainingError(
            f"trajectory {trajectory.id}: its retries cannot be trimmed: outputs {what}",
            hint="a chat template that renders history anew breaks paths; data.preflight says where",
        )
    return _Trimmer(trajectory, outputs, failures, encoder).run()


def _masked(trajectory: Trajectory, outputs: Sequence[Output]) -> Trajectory:
    """The trajectory with these outputs masked out."""
    paths = [msgspec.structs.replace(path, mask=list(path.mask)) for path in trajectory.paths]
    for output in outputs:
        if output.path is not None:
            for place in output.tokens:
                paths[output.path].mask[place] = 0
    return msgspec.structs.replace(trajectory, paths=paths)


@dataclass
class _Trimmer:
    """Puts what stays together. `context` are ids and `told` messages that come before the next output that stays."""

    source: Trajectory
    outputs: list[Output]
    failures: dict[int, Failure]
    encoder: ChatEncoder | None
    path: TokenPath = field(default_factory=lambda: TokenPath([], [], []))
    messages: Messages = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    gone: set[tuple[int, str]] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)
    reminded: set[int] = field(default_factory=set)
    context: list[int] = field(default_factory=list)
    told: Messages = field(default_factory=list)
    is_changed: bool = False

    def run(self) -> Trajectory:
        """The trimmed trajectory."""
        first = self.outputs[0]
        self.context = self.source.paths[0].ids[: first.start]
        self.told = self.source.messages[: first.message]
        for place, output in enumerate(self.outputs):
            failure = self.failures.get(place)
            if failure is None:
                self._keep(place)
            elif failure.whole:
                self.is_changed = True
            elif (rest := self._without(output, failure)) is not None:
                self._rewrite(output, failure, *rest)
            else:
                self._keep(place, is_learnt=False)
        self.messages += self.told
        return self._result()

    def _keep(self, place: int, *, is_learnt: bool = True) -> None:
        """An output and what was told because of it, as they are."""
        output = self.outputs[place]
        path, messages = self.source.paths[0], self.source.messages
        after = self.outputs[place + 1].start if place + 1 < len(self.outputs) else len(path.ids)
        logprobs = path.logprobs[output.start : output.end]
        self._say(output, messages[output.message], path.ids[output.start : output.end], logprobs, is_learnt=is_learnt)
        self.context = path.ids[output.end : after]
        self.told = messages[output.message + 1 : output.after]

    def _rewrite(self, output: Output, failure: Failure, message: dict[str, Any], told: Messages) -> None:
        """An output without the calls that failed."""
        assert self.encoder is not None
        self.is_changed = True
        ids = self.encoder.reply(message["content"], message.get("reasoning_content"), message["tool_calls"])
        self._say(output, message, ids, [0.0] * len(ids), is_learnt=True)
        self.context = self.encoder.extend(ids, told)[len(ids) :]
        self.told = told
        self.gone |= {(output.call.round, name) for name in failure.ids}
        self.reminded.add(output.call.round)

    def _without(self, output: Output, failure: Failure) -> tuple[dict[str, Any], Messages] | None:
        """The message without the calls that failed, and what was told of the others; None where that cannot be said."""
        if self.encoder is None:
            return None
        told = self.source.messages[output.message + 1 : output.after]
        apart = [message for message in told if message["role"] != "tool"]
        number = output.call.round
        passed = {t.name for t in self.source.tools if t.round == number and t.id not in failure.ids}
        if apart and any(
            hook.round == number and hook.event == "post_tool" and hook.decision == "retry" and hook.tool in passed
            for hook in self.source.hooks
        ):
            return None  # which of the reminders are of calls that stay?
        message = self.source.messages[output.message]
        left = [call for call in message["tool_calls"] if call["id"] not in failure.ids]
        results = [one for one in told if one["role"] == "tool" and one["tool_call_id"] not in failure.ids]
        return {**message, "tool_calls": left}, results

    def _say(
        self, output: Output, message: dict[str, Any], ids: list[int], logprobs: list[float], *, is_learnt: bool
    ) -> None:
        path = self.path
        self.messages += self.told
        path.ids += self.context
        start = len(path.ids)
        path.ids += ids
        path.mask += [0] * len(self.context) + [int(is_learnt)] * len(ids)
        path.logprobs += [0.0] * len(self.context) + ([0.0] * len(ids) if self.is_changed else logprobs)
        self.calls.append(
            msgspec.structs.replace(output.call, seen=len(self.messages), path=0, tokens=(start, len(path.ids)))
        )
        self.messages.append(message)
        self.rounds.add(output.call.round)

    def _result(self) -> Trajectory:
        source = self.source
        return msgspec.structs.replace(
            source,
            messages=self.messages,
            calls=self.calls,
            tools=[t for t in source.tools if t.round in self.rounds and (t.round, t.id) not in self.gone],
            hooks=[hook for hook in source.hooks if self._stays(hook)],
            paths=[self.path] if self.calls else [],
        )

    def _stays(self, hook: HookDecision) -> bool:
        """Whether a decision is of an output that stays; those of no round (0) do."""
        if hook.round in self.reminded and hook.decision in ("block", "retry"):
            return False
        return hook.round in self.rounds or hook.round == 0 or hook.event == "end"
