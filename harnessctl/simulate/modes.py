"""Modes: what surrounds the message of a scenario: earlier talk, what viewers do, other viewers, a second wish [3.3].

| mode    | what it adds                                                   | where it does not come                      |
|---------|----------------------------------------------------------------|---------------------------------------------|
| history | earlier talk in the input `history`                            | the family gives a history of its own       |
| actions | one to three viewer actions in the input `actions`; who asks   | the family gives actions of its own         |
|         | does nothing to an item                                        |                                             |
| several | one to three messages of others, or another viewer who asks    | the reply is private, or nothing is said    |
|         | the same in other words; the whole is one multi-comment input  |                                             |
| mixed   | the message of a second family of the same room and language,  | no family of the intent may be combined, or |
|         | of another intent if it can be; gold is of both                | no two replies fit `reply_max_chars` at once |

What always holds: surroundings are in the language of the message and in inputs that the harness declares, and change
nothing in gold but for `mixed`. A message of a viewer whom gold is about comes first, since context is of who wrote first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harnessctl.augment.stream import Stream
from harnessctl.manifests.specs.world import Chatter, Simulation
from harnessctl.records.comment import ViewerMessage
from harnessctl.records.scenario import Gold
from harnessctl.score.phrases import Said
from harnessctl.simulate.families import LoadedFamily, Row
from harnessctl.simulate.slots import as_text
from harnessctl.simulate.world import LiveWorld

Mode = Literal["history", "actions", "several", "mixed"]
MODES: tuple[Mode, ...] = ("history", "actions", "several", "mixed")
HOST = "host"
#: How many second families are tried before a mixed request is given up.
_PAIRINGS = 8
#: How many right replies a mixed request keeps.
_REPLIES = 6
_SEPARATORS = {"zh": ""}
_COMMAS = {"zh": "，"}


@dataclass(slots=True)
class Drawn:
    """A family with the row and language that were drawn, and its gold."""

    family: LoadedFamily
    language: str
    row: Row
    gold: Gold


@dataclass(slots=True)
class Scene:
    """What the request says and what is right."""

    messages: list[ViewerMessage]
    context: dict[str, Any]
    gold: Gold
    family: str
    mode: list[Mode] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Surroundings:
    """Chatter with its queries run: who may write, by language, and what viewers may do, by room."""

    chatter: Chatter
    viewers: Mapping[str | None, list[str]]
    actions: Mapping[Any, list[dict[str, Any]]]

    @classmethod
    def read(cls, world: LiveWorld, chatter: Chatter) -> Surroundings:
        """Run the queries once."""
        viewers: dict[str | None, list[str]] = {}
        for row in world.read(chatter.viewers)[1] if chatter.viewers else ():
            viewers.setdefault(row.get("language"), []).append(f"{row['viewer']}")
        actions: dict[Any, list[dict[str, Any]]] = {}
        for row in world.read(chatter.actions)[1] if chatter.actions else ():
            entry = {name: value for name, value in row.items() if name != "room" and value is not None}
            actions.setdefault(row.get("room"), []).append(entry)
        return cls(chatter, viewers, actions)

    def names(self, language: str) -> list[str]:
        """Viewers who write in a language."""
        return [*self.viewers.get(language, ()), *self.viewers.get(None, ())]


class Modes:
    """Draws and applies modes for one harness."""

    def __init__(
        self,
        simulation: Simulation,
        around: Surroundings,
        halves: Sequence[LoadedFamily],
        *,
        inputs: frozenset[str],
        longest: float | None,
    ) -> None:
        self._rates = [(mode, float(getattr(simulation, mode))) for mode in MODES]
        self._around = around
        self._inputs = inputs
        self._longest = longest
        self._halves: dict[tuple[Any, str], list[tuple[LoadedFamily, list[Row]]]] = {}
        for family in halves:
            for language, rows in family.by_language.items():
                for room in dict.fromkeys(row.get("room") for row in rows):
                    found = [row for row in rows if row.get("room") == room]
                    self._halves.setdefault((room, language), []).append((family, found))

    def drawn(self, stream: Stream) -> frozenset[Mode]:
        """The modes that a scenario is to have."""
        return frozenset([mode for mode, rate in self._rates if stream.unit() < rate])

    def apply(self, drawn: Drawn, message: str, wanted: frozenset[Mode], stream: Stream) -> Scene:
        """The scene around a message."""
        family, row, language = drawn.family, drawn.row, drawn.language
        others = stream.shuffled(self._around.names(language))
        viewer = as_text(row.get("viewer")) or (others.pop() if others else "viewer")
        scene = Scene([ViewerMessage(message, viewer=viewer)], family.context.fill(row), drawn.gold, family.spec.id)
        others = [name for name in others if name != viewer]
        if "mixed" in wanted and family.spec.combine and self._mix(scene, drawn, others, stream):
            scene.mode.append("mixed")
        elif "several" in wanted and drawn.gold.route == "public" and drawn.gold.stop == "replied":
            self._add_others(scene, drawn, others, stream)
        if "history" in wanted and "history" in self._inputs and "history" not in scene.context:
            self._add_history(scene, language, viewer, others, stream)
        if "actions" in wanted and "actions" in self._inputs and "actions" not in scene.context:
            self._add_actions(scene, row.get("room"), viewer, others, stream)
        scene.mode.sort(key=MODES.index)
        return scene

    def _add_others(self, scene: Scene, drawn: Drawn, others: list[str], stream: Stream) -> None:
        comments = self._around.chatter.comments.get(drawn.language, [])
        wordings = drawn.family.messages[drawn.language]
        own = scene.messages[0]
        if len(wordings) > 1 and "viewer" not in drawn.row and stream.chance(0.5):
            again = stream.choice([text for text in (w.fill(drawn.row) for w in wordings) if text != own.text] or [""])
            texts = [again] if again else []
        else:
            texts = stream.shuffled(comments)[: stream.integer(1, 3)]
        if not texts or len(others) < len(texts):
            return
        added = [ViewerMessage(text, viewer=others.pop()) for text in texts]
        at = 0 if "viewer" in drawn.row else stream.integer(0, len(added))
        scene.messages = [*added[:at], own, *added[at:]]
        scene.mode.append("several")

    def _add_history(self, scene: Scene, language: str, viewer: str, others: list[str], stream: Stream) -> None:
        turns = stream.shuffled(self._around.chatter.history.get(language, []))[: stream.integer(1, 3)]
        if not turns:
            return
        names = [viewer, *others[:2]]
        scene.context["history"] = [
            {"speaker": speaker, "text": text}
            for said, answered in turns
            for speaker, text in ((stream.choice(names), said), (HOST, answered))
        ]
        scene.mode.append("history")

    def _add_actions(self, scene: Scene, room: Any, viewer: str, others: list[str], stream: Stream) -> None:
        known = self._around.actions.get(room) or self._around.actions.get(None)
        if not known:
            return
        # Who asks has not just done something to an item: that could be what "it" means, or what was asked for.
        plain = [entry for entry in known if entry.keys() == {"action"}]
        names = [*([viewer] if plain else []), *others[:3]]
        if not names:
            return
        actors = [stream.choice(names) for _ in range(stream.integer(1, 3))]
        scene.context["actions"] = [
            {"viewer": name, **stream.choice(plain if name == viewer else known)} for name in actors
        ]
        scene.mode.append("actions")

    def _mix(self, scene: Scene, drawn: Drawn, others: list[str], stream: Stream) -> bool:
        """Add the message and the gold of a second family; whether one was found that goes with the first."""
        found = self._halves.get((drawn.row.get("room"), drawn.language), [])
        other = [entry for entry in found if entry[0].spec.intent != drawn.family.spec.intent]
        found = other or [entry for entry in found if entry[0] is not drawn.family]
        for _ in range(_PAIRINGS if found else 0):
            family, rows = stream.choice(found)
            row = stream.choice(rows)
            second = Drawn(family, drawn.language, row, family.gold_for(drawn.language, row))
            gold = self._united(drawn, second)
            if gold is None:
                continue
            text = stream.choice(family.messages[drawn.language]).fill(row)
            own = scene.messages[0]
            personal = "viewer" in row or "viewer" in drawn.row
            if stream.chance(0.5):
                scene.messages = [ViewerMessage(_in_one(own.text, text, drawn.language), viewer=own.viewer)]
            else:
                other = own.viewer if personal or not others else others.pop()
                scene.messages = [own, ViewerMessage(text, viewer=other)]
            scene.context = scene.context | family.context.fill(row)
            scene.gold, scene.family = gold, f"{drawn.family.spec.id}+{family.spec.id}"
            return True
        return False

    def _united(self, first: Drawn, second: Drawn) -> Gold | None:
        """The gold of both, or None where one reply cannot be right for both."""
        a, b = first.gold, second.gold
        if (a.route, a.stop) != (b.route, b.stop) or _clash(first, second):
            return None
        if _forbids(a, b) or _forbids(b, a):
            return None
        claims = [*a.claims, *(claim for claim in b.claims if claim not in a.claims)]
        separator = _SEPARATORS.get(first.language, " ")
        replies = self._joined(a.replies, b.replies, separator, claims)
        can_fail = bool(a.fallbacks or b.fallbacks)
        fallbacks = self._joined(a.fallbacks or a.replies, b.fallbacks or b.replies, separator, claims)
        if not replies or (can_fail and not fallbacks):
            return None
        return Gold(
            skills=_once(a.skills, b.skills),
            strategies=[name for name in _once(a.strategies, b.strategies) if name not in (*a.skills, *b.skills)],
            calls=_once(a.calls, b.calls),
            optional=_once(a.optional, b.optional),
            alternatives=[
                _once(one, other)
                for one in (a.calls, *a.alternatives)
                for other in (b.calls, *b.alternatives)
                if one is not a.calls or other is not b.calls
            ],
            facts=_once(a.facts, b.facts),
            claims=claims,
            route=a.route,
            stop=a.stop,
            end_state=_once(a.end_state, b.end_state),
            replies=replies,
            fallbacks=fallbacks if can_fail else [],
            known={**b.known, **a.known},
        )

    def _joined(self, a: list[str], b: list[str], separator: str, claims: list[str]) -> list[str]:
        pairs = [f"{one}{separator}{other}" for one in a for other in b]
        fits: Callable[[str], bool] = lambda text: self._longest is None or len(text) <= self._longest  # noqa: E731
        return [text for text in pairs if fits(text) and not _makes(text, claims)][:_REPLIES]


def _in_one(first: str, second: str, language: str) -> str:
    """Two wishes in one message: a comma between them where the first does not end by itself."""
    if not first[-1:].isalnum():
        return f"{first} {second}"
    return f"{first}{_COMMAS.get(language, ', ')}{second}"


def _clash(first: Drawn, second: Drawn) -> bool:
    """Whether the two rows are about two viewers, or their contexts give one input two values."""
    if first.row.get("viewer") != second.row.get("viewer"):
        return True
    a, b = first.family.context.fill(first.row), second.family.context.fill(second.row)
    return any(a[name] != b[name] for name in a.keys() & b.keys())


def _forbids(first: Gold, second: Gold) -> bool:
    """Whether something that is right to say for `second` is a claim that `first` forbids."""
    right = [*second.replies, *second.fallbacks, *(way for fact in second.facts for way in fact.any)]
    return any(_makes(text, first.claims) for text in right)


def _makes(text: str, claims: list[str]) -> bool:
    if not claims:
        return False
    said = Said(text)
    return any(said.says(claim) for claim in claims)


def _once(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Both lists in order, equal members once."""
    out = list(first)
    out += [item for item in second if item not in out]
    return out
