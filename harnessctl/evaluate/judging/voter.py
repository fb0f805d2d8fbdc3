"""Voter: one model that judges through a judge harness, one item at a time.

What always holds: an answer that cannot be used is asked for again with its fault said (repair), a failure of the way to
the model is tried again (retry), both within `tries`; after that there is no score, and its cause is kept. What a voter
is asked depends on the item alone, so that a vote is the same whatever was asked before or beside it.
"""

from __future__ import annotations

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.evaluate.judging.answer import Answer, NoAnswer, read_answer
from harnessctl.evaluate.judging.ballots import Ballot, Ballots
from harnessctl.evaluate.judging.case import Case
from harnessctl.manifests.specs.roles import RoleModel
from harnessctl.records.trajectory import Trajectory
from harnessctl.records.vote import Vote
from harnessctl.runtime.agent import Agent
from harnessctl.storage import digest_bytes

#: After so many items in a row in which the endpoint failed, the others are not asked.
GIVE_UP_AFTER = 8
#: Causes that lie on the way to the model.
_ON_THE_WAY = frozenset({"endpoint", "deadline"})


class Voter:
    """Votes with one model. `agent` runs the judge's `bundle` with it; both belong to the caller."""

    def __init__(
        self, name: str, model: RoleModel, agent: Agent, bundle: Bundle, ballots: Ballots, *, tries: int = 3
    ) -> None:
        self.name = name
        self.model = model
        self.bundle = bundle
        self.ballots = ballots
        self._agent = agent
        self._tries = tries
        self._failed = 0
        self._last_failure = ""

    def key(self, case: Case) -> str:
        """SHA-256 of all that the vote depends on: judge, model and its sampling, and what is judged."""
        asked = (self.bundle.digest, msgspec.to_builtins(self.model) | {"key_env": None}, msgspec.to_builtins(case))
        return digest_bytes(msgspec.json.encode(asked, order="sorted"))

    async def vote(self, case: Case) -> Vote:
        """The vote on a case, asked for now or kept from before. StorageError when it cannot be kept."""
        key = self.key(case)
        known = self.ballots.scored(key)
        if known is not None:
            return known.vote
        ballot = await self._ask(case, key)
        self.ballots.keep(ballot)
        return ballot.vote

    async def _ask(self, case: Case, key: str) -> Ballot:
        vote = Vote(
            id=case.id,
            voter=self.name,
            model=self.model.name,
            harness=self.bundle.name,
            judge=self.bundle.digest,
            key=key,
        )
        if self._failed >= GIVE_UP_AFTER:
            vote.cause = "endpoint"
            vote.error = f"not asked: {self._failed} items before it failed, the last with: {self._last_failure}"
            return Ballot(key=key, is_scored=False, vote=vote, judgements=[])
        judgements: list[Trajectory] = []
        fault: str | None = None
        while len(judgements) < self._tries:
            name = f"judge-{key[:16]}-{len(judgements) + 1}"
            trajectory = await self._agent.run(case.asked(name, fault))
            judgements.append(trajectory)
            found = self._read(trajectory, case.id)
            if isinstance(found, Answer):
                vote.accuracy, vote.effectiveness, vote.reason = found.accuracy, found.effectiveness, found.reason
                vote.cause, vote.error = None, None
                break
            vote.cause, vote.error = found.cause, found.words
            if found.cause == "harness":
                break  # the judge does not take this case; asking again changes nothing
            fault = None if found.cause in _ON_THE_WAY else found.words
        self._count_failure(vote)
        vote.attempts = len(judgements)
        vote.lookups = sum(call.status == "ok" for t in judgements for call in t.tools)
        calls = [call for t in judgements for call in t.calls]
        vote.prompt_tokens = sum(call.usage.prompt_tokens for call in calls)
        vote.completion_tokens = sum(call.usage.completion_tokens for call in calls)
        return Ballot(key=key, is_scored=vote.accuracy is not None, vote=vote, judgements=judgements)

    def _count_failure(self, vote: Vote) -> None:
        """Count items in a row that the endpoint failed; one that it answered, however badly, begins anew."""
        if vote.cause in _ON_THE_WAY:
            self._failed += 1
            self._last_failure = vote.error or ""
        else:
            self._failed = 0

    def _read(self, trajectory: Trajectory, item: str) -> Answer | NoAnswer:
        pointers = self._agent.state.scores
        match trajectory.stop:
            case "replied":
                return read_answer(trajectory.reply, item, pointers)
            case "model_error":
                return NoAnswer("endpoint", trajectory.error or "the model failed")
            case "deadline" | "cancelled":
                return NoAnswer("deadline", trajectory.error or "there was no answer in time")
            case "hook_blocked":
                return NoAnswer("harness", trajectory.error or "the judge's harness let no answer through")
            case "silent" | "refused":
                return NoAnswer("nothing", "it ended without an answer; answer with one JSON object")
            case _:  # the rounds were used up: on look-ups, or on answers that the harness sent back
                found = read_answer(_last_said(trajectory), item, pointers)
                ending = trajectory.error or f"it ended {trajectory.stop}"
                return found if isinstance(found, NoAnswer) else NoAnswer("harness", ending)


def _last_said(trajectory: Trajectory) -> str:
    """The last text of the model in a request that came to no reply."""
    said = (m["content"] for m in reversed(trajectory.messages) if m["role"] == "assistant" and m.get("content"))
    return str(next(said, ""))
