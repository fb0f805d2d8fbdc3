"""Oracle: a policy that does what gold says, by the plan of each scenario, and recovers from what goes wrong [3.3].

What always holds: what it does next depends on the request's messages (and its deadline) alone, so that any number of
requests may run at once; it speaks in the names that the harness shows; a reply is said before the rounds are used up.
Wording and the place of the skill's round are drawn from the seed and the request's id.

A call that failed, came back malformed or stale, or that a hook sent back is made once more; one that was denied is not.
What cannot be had leaves a fallback. A reply that a hook sends back is followed by the next wording. What a scenario's
task asks of the reply's form and of the order of calls is done, see `obeying`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import orjson

from harnessctl.augment.stream import Stream
from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.errors import ModelError
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.loop import Loop, loop_state
from harnessctl.runtime.models.wire import made_up_id
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall
from harnessctl.runtime.surface import SurfaceView
from harnessctl.simulate.flaws import Flaw, Saying
from harnessctl.simulate.obeying import arranged, asked_of, keeps, obeyed
from harnessctl.simulate.plan import Plan, PlanBlocked, Planner, Step
from harnessctl.simulate.reading import Reader, Turn
from harnessctl.simulate.steps import call_key
from harnessctl.simulate.wording import wordings

#: Plans that are kept; a request asks for its own in every round.
_KEPT = 1024
#: How often a call is made again after it failed.
RETRIES = 1


@dataclass(slots=True)
class Due:
    """What remains of a plan. `pending` are groups of calls to make, `given_up` the tools of calls that failed for good."""

    pending: list[list[Step]] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)


class Oracle:
    """Plays the plans of scenarios, found by the request's id. Give it the bundle that the agent runs, a variant or not, or
    the very state; without skills (`loop` react) none is loaded.

    `flaw` makes it a degraded oracle, for the share `rate` of the requests. `clock` is the agent's, and so may
    `surface` be. A scenario whose plan is blocked is a ModelError that says by what.
    """

    template: str | None = None

    def __init__(
        self,
        bundle: Bundle | HarnessState,
        scenarios: Callable[[str], Scenario],
        *,
        seed: int = 0,
        flaw: Flaw | None = None,
        rate: float = 1.0,
        loop: Loop = "harness",
        clock: Clock | None = None,
        planner: Planner | None = None,
        surface: SurfaceView | None = None,
    ) -> None:
        if surface is None:
            surface = SurfaceView(loop_state(bundle, loop) if isinstance(bundle, Bundle) else bundle)
        state = surface.state
        self.name = "oracle" if flaw is None else f"oracle-{flaw.name}"
        self.surface = surface
        self._planner = planner or Planner(state, self.surface)
        self._writes = frozenset(tool.name for tool in state.tools if tool.effect == "write")
        self._reader = Reader(self.surface)
        self._scenarios = scenarios
        self._seed = seed
        self._flaw = flaw
        self._rate = rate
        self._clock = clock or Clock()
        limits = self.surface.limits
        self._max_rounds = int(limits["max_rounds"])
        self._max_repeats = int(limits["max_repeats"])
        self._max_chars = limits.get("reply_max_chars", float("inf"))
        self._max_calls = limits.get("max_tool_calls", float("inf"))
        self._plans: dict[str, tuple[Scenario, Plan]] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next message: calls of the plan, or the reply."""
        scenario, plan = self._plan(request.request_id)
        flaw = self._flaw_of(request.request_id)
        turn = self._reader.turn(request.messages, scenario)
        due = self._due(plan, scenario, turn)
        left = self._max_rounds - turn.rounds
        is_late = request.deadline - self._clock.monotonic() < self.surface.limits["tool_timeout_s"]
        calls = self._next_calls(plan, due, turn, left, is_late=is_late)
        if calls:
            return self._calling(calls, request, flaw)
        stream = Stream(self._seed, request.request_id, "wording")
        missed = [*due.given_up, *(step.tool for group in due.pending for step in group)]
        said = wordings(
            plan, scenario, turn, missed, stream, writes=self._writes, is_json=self.surface.state.reply_format == "json"
        )
        asked = asked_of(scenario, frozenset() if flaw is None else flaw.ignores)
        if asked:
            said = [obeyed(text, asked, scenario.language) for text in said]
            said.sort(key=lambda text: (len(text) > self._max_chars, not keeps(text, asked)))
        text = said[turn.sent_back % len(said)]
        if flaw is not None and flaw.reply is not None:
            saying = Saying(text, scenario, turn, self.surface.state, Stream(self._seed, request.request_id, flaw.name))
            text = flaw.reply(saying)
        return ModelReply(content=text, finish_reason="stop")

    async def aclose(self) -> None:
        """Nothing is held."""

    def plan(self, scenario: Scenario) -> Plan:
        """What it is going to do for a scenario, flaws included; PlanBlocked when that cannot be done."""
        plan = self._planner.plan(scenario)
        request_id = scenario.request.id
        flaw = self._flaw_of(request_id)
        asked = asked_of(scenario, frozenset() if flaw is None else flaw.ignores)
        if asked:
            plan = arranged(plan, scenario, asked, self._planner.load_skill)
        if flaw is not None and flaw.plan is not None:
            plan = flaw.plan(plan, scenario, self._planner, Stream(self._seed, request_id, flaw.name))
        return self._skill_apart(plan, Stream(self._seed, request_id, "order"))

    def _plan(self, request_id: str) -> tuple[Scenario, Plan]:
        try:
            scenario = self._scenarios(request_id)
        except KeyError:
            raise ModelError(f"the oracle knows no scenario for the request {request_id!r}", retryable=False) from None
        found = self._plans.get(request_id)
        if found is None or found[0] is not scenario:
            try:
                found = scenario, self.plan(scenario)
            except PlanBlocked as error:
                raise ModelError(
                    f"the oracle has no plan for {request_id}: {error.message}", retryable=False
                ) from error
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            self._plans[request_id] = found
        return found

    def _flaw_of(self, request_id: str) -> Flaw | None:
        if self._flaw is None or not Stream(self._seed, request_id, "flawed").chance(self._rate):
            return None
        return self._flaw

    def _skill_apart(self, plan: Plan, stream: Stream) -> Plan:
        """The plan, or the plan with a round for the skills alone; one more must be left for a call made again."""
        if not plan.rounds or len(plan.rounds) + 3 > self._max_rounds or not stream.chance(0.5):
            return plan
        first = plan.rounds[0]
        skills = tuple(takewhile(lambda step: step.why == "skill", first))
        rest = first[len(skills) :]
        if not skills or not rest:
            return plan
        return replace(plan, rounds=(skills, rest, *plan.rounds[1:]))

    def _due(self, plan: Plan, scenario: Scenario, turn: Turn) -> Due:
        """What of the plan is left, by what came of the calls so far.

        A call that writes went through even where its answer is old. One for which a hook demands another that failed for
        good is given up with it.
        """
        if not turn.made and not plan.lost and self._max_repeats > 1:  # nothing can have failed yet
            return Due(pending=[list(group) for group in plan.rounds])
        ok: defaultdict[tuple[str, bytes], int] = defaultdict(int)
        failed: defaultdict[tuple[str, bytes], int] = defaultdict(int)
        tried: defaultdict[tuple[str, bytes], int] = defaultdict(int)
        denied: set[tuple[str, bytes]] = set()
        for made in turn.made:
            key = call_key(made.tool, made.arguments)
            tried[key] += 1
            if made.came == "ok" or (made.came == "stale" and made.tool in self._writes):
                ok[key] += 1
                failed[key] = 0
            else:
                failed[key] += 1
                if made.came == "denied":
                    denied.add(key)
        due = Due(given_up=list(plan.lost))
        done: list[Step] = []
        for group in plan.rounds:
            waiting: list[Step] = []
            for step in group:
                key = step.key
                if ok[key]:
                    ok[key] -= 1
                    done.append(step)
                elif (
                    key in denied
                    or failed[key] > RETRIES
                    or tried[key] + 1 >= self._max_repeats
                    or (due.given_up and self._planner.is_wanting(scenario, step, done))
                ):
                    due.given_up.append(step.tool)
                else:
                    waiting.append(step)
                    done.append(step)
            if waiting:
                due.pending.append(waiting)
        return due

    def _next_calls(self, plan: Plan, due: Due, turn: Turn, left: int, *, is_late: bool) -> list[Step]:
        """The calls of the next message; none when the reply is due."""
        if not due.pending:
            return []
        for_reply = 0 if plan.ends else 1
        messages = left - for_reply
        # Late or not, the first calls are made: a harness may give one tool all its time.
        if messages < 1 or (is_late and turn.made):
            return []
        take = max(1, len(due.pending) - messages + 1)
        calls = [step for group in due.pending[:take] for step in group]
        room = self._max_calls - len(turn.made) - for_reply
        return calls[: max(0, int(room))] if room < len(calls) else calls

    def _calling(self, calls: Sequence[Step], request: ModelRequest, flaw: Flaw | None) -> ModelReply:
        surface = self.surface
        plain = flaw is not None and flaw.speaks_canonical
        written = [
            ModelToolCall(
                id=made_up_id(request, number),
                name=step.tool if plain else surface.tool_name(step.tool),
                arguments=orjson.dumps(
                    step.arguments if plain else surface.args_to_surface(step.tool, step.arguments)
                ).decode(),
            )
            for number, step in enumerate(calls)
        ]
        return ModelReply(tool_calls=written, finish_reason="tool_calls")
