"""Turn: the first messages of a request, what it takes from its session, and what it leaves to the next turn."""

from __future__ import annotations

from typing import Any

from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.ending import Ending
from harnessctl.runtime.notices import NOT_RUN
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.request import RequestRun
from harnessctl.runtime.scene import SessionState
from harnessctl.runtime.session import Session, turn_history
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tokens import TokenPaths


class Turns:
    """Begins and ends turns for one bundle and one model (`model` is its name)."""

    def __init__(self, surface: SurfaceView, model: str, clock: Clock) -> None:
        state = surface.state
        self._surface = surface
        self._model = model
        self._clock = clock
        self._prompt = PromptView(state, surface)
        self._keep = frozenset(state.session_keep)
        self._skills = {skill.name: skill for skill in state.skills}

    def resume(self, run: RequestRun) -> None:
        """Take up what earlier turns left; the deadline counts from here. The session's lock is held."""
        scene = run.scene
        assert run.session is not None
        scene.session = run.session.state
        scene.skills = [self._skills[name] for name in scene.session.skills if name in self._skills]
        scene.deadline = self._clock.monotonic() + scene.limits["deadline_s"]
        if run.deadline is not None:
            scene.deadline = min(scene.deadline, run.deadline)

    def assemble(self, run: RequestRun) -> None:
        """The first messages: system, what earlier turns left, the viewer's. PromptError when a block fails.

        Skills that were kept without the history that held their bodies stand in the system message.
        """
        scene, session = run.scene, run.session
        system = self._prompt.system(scene.context, run.viewer_messages)
        if scene.skills and "history" not in self._keep:
            bodies = [self._surface.skill_body(skill.name) for skill in scene.skills]
            system = "\n\n".join([system, *bodies] if system else bodies)
        user = self._prompt.user(scene.context, run.viewer_messages)
        if system:
            run.messages.append({"role": "system", "content": system})
        run.messages += scene.session.history
        run.head = len(run.messages)
        run.messages.append({"role": "user", "content": user})
        run.system = system
        run.prompt_digest = self._prompt.digest(system)
        if session is not None and session.prefix_ids is not None and session.prefix_key == self._key(run):
            run.paths = TokenPaths(session.prefix_ids, session.prefix_messages)

    def leave(self, run: RequestRun, ending: Ending) -> None:
        """Leave what the harness keeps to the next turn. The session's lock is held."""
        session, scene = run.session, run.scene
        assert session is not None
        run.turn = session.state.turns
        skills = [skill.name for skill in scene.skills]
        is_unchanged = self._keep_of(session.state, scene.calls, skills, run.messages[run.head :], ending.reply)
        if "history" in self._keep and run.messages:
            session.prefix_key = self._key(run)
            session.prefix_ids = run.paths.prefix_ids if is_unchanged else None
            session.prefix_messages = run.paths.prefix_messages

    def restore(self, session: Session, turn: Trajectory) -> None:
        """Leave to the next turn what a recorded one left; what python tools kept for themselves is lost."""
        head = len(session.state.history) + (bool(turn.messages) and turn.messages[0].get("role") == "system")
        self._keep_of(session.state, turn.tools, turn.skills, turn.messages[head:], turn.reply)

    def _keep_of(
        self, state: SessionState, calls: list[ToolCall], skills: list[str], messages: list[dict[str, Any]], reply: str
    ) -> bool:
        """Add one turn to what is kept; whether its messages stand in the history as they were."""
        state.turns += 1
        if "calls" in self._keep:
            state.calls = state.calls + calls
        if "skills" in self._keep:
            state.skills = list(skills)
        if "history" not in self._keep or not messages:
            return True
        turn, is_unchanged = turn_history(messages, reply, NOT_RUN)
        state.history = state.history + turn
        return is_unchanged

    def _key(self, run: RequestRun) -> str:
        """Equal for turns whose token ids may be joined: same model, system message and tools."""
        return f"{self._model} {run.prompt_digest}"
