"""Drafting: one plan under way, from gold's calls to rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from harnessctl.records.scenario import Gold, GoldCall, Scenario
from harnessctl.records.trajectory import ToolCall
from harnessctl.runtime.checks.check import Moment
from harnessctl.runtime.scene import Scene, SessionState
from harnessctl.simulate.demands import Called, Finding, Guard, Loaded, Need
from harnessctl.simulate.filling import Unfilled
from harnessctl.simulate.ground import Ground
from harnessctl.simulate.rounds import fit, grouped, is_told
from harnessctl.simulate.steps import Plan, PlanBlocked, Step, call_key

#: How often one hook is asked again for one call: each answer may bring another call before it.
_MAX_ASKED = 8


class Drafting:
    """One plan under way. `steps` are those placed so far; `left` are gold's calls that are not. `guesses`: identifiers are
    written before they were told, since there are too few rounds to wait for them."""

    def __init__(self, ground: Ground, scenario: Scenario, gold: Gold, calls: Sequence[GoldCall]) -> None:
        self.ground = ground
        self.scenario = scenario
        self.gold = gold
        self.steps: list[Step] = []
        self.left = [*self._loads(), *(Step(call.tool, call.arguments) for call in calls)]
        self.guesses = False
        said = "\n".join(message.text for message in scenario.request.viewer_messages())
        self.scene = Scene(
            request=scenario.request, context=scenario.request.context, limits=ground.limits, session=SessionState(),
            world=None, started=0.0, deadline=float("inf"), message=said,
        )  # fmt: skip

    def finish(self) -> Plan:
        """All of it, or PlanBlocked."""
        ground, gold = self.ground, self.gold
        for skill in gold.skills:
            if skill not in ground.skills and ground.load_skill is not None:
                raise PlanBlocked("skill", f"`{skill}` is not on offer; on offer: {', '.join(ground.skills) or 'none'}")
        while self.left:
            self.add(self.left.pop(0), ())
        ends = bool(self.steps) and ground.tools[self.steps[-1].tool].final is not None
        if not ends and gold.stop == "replied":
            self._need_reply_skill()
        replies = self._replies()
        fallbacks = tuple(text for text in gold.fallbacks if self._verdict(text)[0] in ("met", "wanting"))
        rounds, least = self._rounds(ends=ends)
        if rounds is None:
            self.guesses = True
            rounds, least = self._rounds(ends=ends)
        if rounds is None:
            raise PlanBlocked(
                "limit", f"it takes {least + (not ends)} rounds; max_rounds is {ground.limits['max_rounds']:g}"
            )
        made = sum(map(len, rounds))
        if made >= ground.limits.get("max_tool_calls", float("inf")) + ends:
            raise PlanBlocked("limit", f"it takes {made} calls; max_tool_calls is {ground.limits['max_tool_calls']:g}")
        return Plan(scenario=self.scenario.id, rounds=rounds, replies=replies, fallbacks=fallbacks, ends=ends,
                    min_rounds=least + (not ends))  # fmt: skip

    def _loads(self) -> list[Step]:
        """Gold's skills as calls; none where the harness has no skills to load."""
        return [self._load(skill) for skill in self.gold.skills] if self.ground.load_skill is not None else []

    def _load(self, skill: str) -> Step:
        assert self.ground.load_skill is not None
        return Step(self.ground.load_skill, {self.ground.load_skill_argument: skill}, "skill")

    def _rounds(self, *, ends: bool) -> tuple[tuple[tuple[Step, ...], ...] | None, int]:
        ground = self.ground
        groups = grouped(self.steps, self._may_join, one_by_one=int(ground.limits["max_parallel_tools"]) == 1)
        return fit(groups, ground.is_alone, int(ground.limits["max_rounds"]) - (not ends))

    def add(self, step: Step, under_way: tuple[tuple[str, bytes], ...]) -> None:
        """Place a call after all that hooks demand before it."""
        ground = self.ground
        if step.tool not in ground.tools:
            raise PlanBlocked("tool", f"there is no tool `{step.tool}`", call=step)
        if step.key in under_way:
            raise PlanBlocked(step.hook, "the hooks demand each other's calls first", call=step)
        fault = ground.filling.fault(step.tool, step.arguments)
        if fault:
            raise PlanBlocked("tool", f"the arguments do not fit: {fault}", call=step)
        for guard in ground.demands.before_calls[step.tool]:
            for _ in range(_MAX_ASKED):
                finding = guard.find(self.moment("pre_tool", step))
                if finding.state == "refused":
                    raise PlanBlocked(guard.hook, finding.reason, call=step)
                if finding.state != "wanting" or not self._satisfy_all(guard, finding, step, under_way):
                    break
            else:
                raise PlanBlocked(guard.hook, "what it demands never suffices", call=step)
        self.steps.append(step)

    def _satisfy_all(
        self, guard: Guard, finding: Finding, step: Step | None, under_way: tuple[tuple[str, bytes], ...]
    ) -> bool:
        """Place what a hook wants; false where nothing could be, and it may hold all the same."""
        done = False
        for need in finding.needs:
            done = self._satisfy(guard, need, step, under_way) or done
        return done

    def _satisfy(self, guard: Guard, need: Need, step: Step | None, under_way: tuple[tuple[str, bytes], ...]) -> bool:
        if isinstance(need, Called):
            self._call_first(guard, need, step, under_way)
            return True
        if isinstance(need, Loaded):
            self._load_first(guard, need, step, under_way)
            return True
        blocked: PlanBlocked | None = None
        for option in need.options:
            kept = self._kept()
            try:
                return self._satisfy_all(guard, Finding("wanting", option), step, under_way)
            except PlanBlocked as error:
                self._restore(kept)
                blocked = blocked or error
        if need.may_hold:
            return False
        assert blocked is not None
        raise blocked

    def _call_first(
        self, guard: Guard, need: Called, step: Step | None, under_way: tuple[tuple[str, bytes], ...]
    ) -> None:
        """Place a call that fits `need`: one that gold makes later, or names as prelude, or that can be filled in."""
        if self.ground.filling.is_met(need, step, self.steps):
            return  # by a call that another part of the same check wanted
        stack = (*under_way, step.key) if step is not None else under_way
        blocked: PlanBlocked | None = None
        try:
            for tool, arguments in self.ground.filling.calls(need, step, self.left, self.gold):
                kept = self._kept()
                later = next((s for s in self.left if s.key == call_key(tool, arguments)), None)
                if later is not None:
                    self.left.remove(later)
                try:
                    self.add(later or Step(tool, arguments, "prelude", guard.hook), stack)
                except PlanBlocked as error:
                    self._restore(kept)
                    blocked = blocked or error
                else:
                    return
        except Unfilled as error:
            blocked = blocked or PlanBlocked(guard.hook, error.message, call=step)
        raise blocked or PlanBlocked(guard.hook, "no tool fits what it demands first", call=step)

    def _load_first(
        self, guard: Guard, need: Loaded, step: Step | None, under_way: tuple[tuple[str, bytes], ...]
    ) -> None:
        """Load the skill that fits `need`: one that gold loads later, or its strategy, or the only one there is."""
        spec = need.spec
        fitting = [
            skill.name
            for skill in self.ground.state.skills
            if spec.skill in (None, skill.name) and spec.kind in (None, skill.kind)
        ]
        later = next((s for s in self.left if s.why == "skill" and self._skill(s) in fitting), None)
        chosen = [name for name in fitting if name in self.gold.strategies] or fitting
        if later is not None:
            self.left.remove(later)
        elif len(chosen) != 1 or self.ground.load_skill is None:
            what = f"skill `{spec.skill}`" if spec.skill else f"{spec.kind} skill"
            raise PlanBlocked(guard.hook, f"a {what} is to be loaded, and gold names none of {len(fitting)}", call=step)
        load = later or replace(self._load(chosen[0]), hook=guard.hook)
        self.add(load, (*under_way, step.key) if step is not None else under_way)

    def _skill(self, step: Step) -> str:
        return step.arguments[self.ground.load_skill_argument]

    def _need_reply_skill(self) -> None:
        ground = self.ground
        offered = [skill.name for skill in ground.state.skills if skill.kind == "reply"]
        if ground.state.require_skill != "reply" or not offered:
            return
        if not any(step.why == "skill" and self._skill(step) in offered for step in self.steps):
            raise PlanBlocked("skill", "the harness requires a reply skill, and gold names none")

    def _replies(self) -> tuple[str, ...]:
        """Gold's replies that may be said. Calls are placed for them only where none may be said without."""
        gold = self.gold
        if gold.stop != "replied" or any(self.ground.tools[step.tool].final for step in self.steps):
            return tuple(gold.replies)
        if not gold.replies:
            raise PlanBlocked("gold", "there is no reply to say")
        verdicts = [(text, *self._verdict(text)) for text in gold.replies]
        free = tuple(text for text, state, _ in verdicts if state == "met")
        if free:
            return free
        blocked: PlanBlocked | None = None
        for text, state, error in verdicts:
            if state == "wanting":
                kept = self._kept()
                try:
                    self._ask_for(text)
                except PlanBlocked as found:
                    self._restore(kept)
                    error = found
                else:
                    return tuple(t for t in gold.replies if self._verdict(t)[0] == "met")
            blocked = blocked or error
        assert blocked is not None
        raise blocked

    def _verdict(self, text: str) -> tuple[Literal["met", "wanting", "refused"], PlanBlocked | None]:
        """What the stop hooks say of a reply, as far as it can be told."""
        moment = self.moment("stop", None, text)
        state: Literal["met", "wanting"] = "met"
        for guard in self.ground.demands.before_replies:
            finding = guard.find(moment)
            if finding.state == "refused":
                return "refused", PlanBlocked(guard.hook, finding.reason)
            if finding.state == "wanting":
                state = "wanting"
        return state, None

    def _ask_for(self, text: str) -> None:
        """Place the calls that the stop hooks demand before this reply."""
        for guard in self.ground.demands.before_replies:
            for _ in range(_MAX_ASKED):
                finding = guard.find(self.moment("stop", None, text))
                if finding.state != "wanting" or not self._satisfy_all(guard, finding, None, ()):
                    break
            else:
                raise PlanBlocked(guard.hook, "what it demands never suffices")

    def moment(self, event: str, step: Step | None, reply: str = "", done: Sequence[Step] | None = None) -> Moment:
        """What hooks see at an event of the plan, calls placed so far (or `done`) being made."""
        scene = self.scene
        before = self.steps if done is None else done
        scene.skills = [self.ground.skills[self._skill(made)] for made in before if made.why == "skill"]
        scene.calls = [_made(made) for made in before]
        scene.tool = self.ground.tools[step.tool] if step is not None else None
        scene.args = step.arguments if step is not None else {}
        scene.reply = reply
        return Moment(event, scene, self.ground.tools)

    def _may_join(self, step: Step, done: Sequence[Step], group: Sequence[Step]) -> bool:
        """Whether a call may be made by the message that makes `group`, `done` being answered before it."""
        is_alone = self.ground.is_alone
        if step.why == "skill":
            return all(other.why == "skill" for other in group)
        if is_alone(step.tool) or any(is_alone(other.tool) and other.why != "skill" for other in group):
            return False
        loads = [other for other in group if other.why == "skill"]
        guards = self.ground.demands.before_calls[step.tool]
        if guards:
            moment = self.moment("pre_tool", step, done=[*done, *loads])
            if any(guard.find(moment).state == "wanting" for guard in guards):
                return False
        return len(loads) == len(group) or self.guesses or is_told(step.arguments, self.scenario)

    def _kept(self) -> tuple[list[Step], list[Step]]:
        return list(self.steps), list(self.left)

    def _restore(self, kept: tuple[list[Step], list[Step]]) -> None:
        self.steps, self.left = list(kept[0]), list(kept[1])


def _made(step: Step) -> ToolCall:
    return ToolCall(round=1, id="", name=step.tool, arguments=step.arguments, status="ok", started_s=0.0, ended_s=0.0)
