"""Augmenter: variants of one parent within one envelope [3.2].

What always holds: a variant depends on the parent, the envelope, the seed, its number, the needs and the rewriter's cache
alone, never on which variants were made before it or where; its record rebuilds it byte for byte; it keeps laws a to e and
h or is refused. Memory does not grow with the number of variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.laws import Broken, check_laws
from harnessctl.augment.laws.pairing import unfit
from harnessctl.augment.laws.wording import check as check_wording
from harnessctl.augment.names import NameMaker
from harnessctl.augment.operator import STAGES, Draft, Operator, Rewriter, Settings
from harnessctl.augment.parent import Parent
from harnessctl.augment.step import Step
from harnessctl.augment.texts import texts_of
from harnessctl.augment.wordings import KeptWordings, VariantWordings
from harnessctl.augment.words import strings_in, words_of
from harnessctl.bundle.files import FORMAT, Bundle, state_digest
from harnessctl.bundle.shared import SharedDigest
from harnessctl.bundle.state import HarnessState, Skill, Tool
from harnessctl.bundle.text import Text
from harnessctl.bundle.variation import Changes, Variation, vary
from harnessctl.errors import BundleError, LawBroken, OperatorError, UsageError
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.records.scenario import Needs
from harnessctl.storage import digest

#: How many variants are made twice where an operator is not shipped.
_REPEATED = 4
_encoder = msgspec.json.Encoder()


@dataclass(slots=True, frozen=True)
class Variant:
    """A variant with its record. The bundle shares the parts that did not change with its parent."""

    bundle: Bundle
    variation: Variation


class Augmenter:
    """Makes variants of `parent`, which must not be altered afterwards.

    `operators` are those that the envelope may name, by name; the shipped ones where none are given. UsageError when the
    envelope names another.
    """

    def __init__(
        self,
        parent: Bundle,
        envelope: Envelope,
        *,
        rewriter: Rewriter,
        operators: Mapping[str, Operator] | None = None,
    ) -> None:
        known = shipped_operators() if operators is None else operators
        if unknown := sorted(set(envelope.operators) - set(known)):
            raise UsageError(
                f"the envelope {envelope.name} names operators that there are not: {', '.join(unknown)}",
                hint=f"operators are {', '.join(sorted(known))}",
            )
        self.parent = parent
        self.envelope = envelope
        self.envelope_digest = envelope_digest(envelope)
        self._facts = Parent(parent.state)
        self._digest = SharedDigest(parent.state)
        self._wordings = KeptWordings(rewriter, (text for _, text, _ in texts_of(parent.state)))
        steps = [Step(known[name], settings) for name, settings in envelope.operators.items() if settings.rate > 0]
        self._steps = sorted(steps, key=lambda step: (STAGES.index(step.operator.stage), step.operator.name))
        self._to_repeat = _REPEATED if any(step.is_foreign for step in self._steps) else 0

    def variant(self, *, seed: int, number: int, needs: Needs | None = None) -> Variant:
        """Variant `number` of the stream of `seed`, which leaves everything that `needs` lists.

        LawBroken when it does not keep a law; OperatorError when an operator fails.
        """
        draft = self._draft(self._steps, seed, number, needs)
        if self._to_repeat:
            self._to_repeat -= 1
            self._check_repeats(draft, needs)
        state = self._vary(draft)
        variation = self._record(draft, self._digest.digest(state))
        broken = self._broken(variation, state, needs)
        if broken:
            raise self._refusal(broken, seed, number, needs)
        parent = self.parent
        bundle = Bundle(
            format=FORMAT,
            name=parent.name,
            version=parent.version,
            digest=variation.variant,
            state=state,
            inventory=parent.inventory,
            world=parent.world,
        )
        return Variant(bundle, variation)

    def _draft(self, steps: Sequence[Step], seed: int, number: int, needs: Needs | None) -> Draft:
        names = NameMaker(self._facts.words)
        draft = Draft(
            state=self.parent.state,
            facts=self._facts,
            names=names,
            rewriter=VariantWordings(self._wordings, names),
            seed=seed,
            number=number,
            needs=needs,
        )
        for step in steps:
            tools, skills = len(draft.changes.added_tools), len(draft.changes.added_skills)
            step.run(draft)
            if step.is_foreign:
                self._check_foreign(step.operator.name, draft)
            new = [*draft.changes.added_tools[tools:], *draft.changes.added_skills[skills:]]
            for text in _texts_of(new):
                names.add_words(words_of(text))
        return draft

    def _check_foreign(self, name: str, draft: Draft) -> None:
        """OperatorError when an operator that is not shipped wrote what no record can hold, or altered the parent.

        What it wrote is taken as a record would give it back, so that a dict in place of a struct means the same later.
        """
        try:
            draft.changes = msgspec.convert(msgspec.to_builtins(draft.changes), Changes)
        except (msgspec.ValidationError, TypeError) as error:
            raise OperatorError(f"the operator {name} wrote a change that does not fit: {error}") from error
        if state_digest(self.parent.state) != self.parent.digest:
            raise OperatorError(
                f"the operator {name} altered the parent", hint="write into draft.changes; all else is for reading"
            )

    def _check_repeats(self, made: Draft, needs: Needs | None) -> None:
        """Law f as far as one process can see it: OperatorError when a variant that is made again comes out different.

        The first that differs is named; where chance made all of them agree this time, those that are not shipped are.
        """
        if _written(made) == _written(self._draft(self._steps, made.seed, made.number, needs)):
            return
        foreign = [count for count, step in enumerate(self._steps, 1) if step.is_foreign]
        named = [self._steps[count - 1].operator.name for count in foreign]
        for count, name in zip(foreign, named, strict=True):
            first, second = (self._draft(self._steps[:count], made.seed, made.number, needs) for _ in range(2))
            if _written(first) != _written(second):
                named = [name]
                break
        raise OperatorError(
            f"law f: variant {made.number} came out different when it was made again, by the operator {' or '.join(named)}",
            hint="draw from `stream` alone: not from random, the clock, or what an earlier call left behind",
        )

    def _vary(self, draft: Draft) -> HarnessState:
        try:
            return vary(self.parent.state, draft.changes)
        except BundleError as error:
            names = ", ".join(draft.applied)
            raise OperatorError(f"variant {draft.number} cannot be made ({names}): {error.message}") from error

    def _record(self, draft: Draft, variant: str) -> Variation:
        return Variation(
            parent=self.parent.digest,
            variant=variant,
            harness=self.parent.name,
            envelope=f"{self.envelope.name}-{self.envelope.version}",
            envelope_digest=self.envelope_digest,
            seed=draft.seed,
            number=draft.number,
            rewriter=draft.rewriter.name,
            operators=draft.applied,
            fallbacks=draft.fallbacks,
            changes=draft.changes,
        )

    def _broken(self, variation: Variation, state: HarnessState, needs: Needs | None) -> list[Broken]:
        found = check_laws(self._facts, self.parent, variation, state, envelope=self.envelope)
        found += check_wording(self.parent.state, variation)
        if needs is not None:
            found += [Broken("d", "needs", reason) for reason in unfit(needs, self.parent.state, variation)]
        return found

    def _refusal(self, broken: list[Broken], seed: int, number: int, needs: Needs | None) -> LawBroken:
        """The error of a variant that breaks laws. The operator to name is the first whose changes break one."""
        guilty: str | None = None
        for count in range(len(self._steps) + 1):
            draft = self._draft(self._steps[:count], seed, number, needs)
            state = self._vary(draft)
            found = self._broken(self._record(draft, ""), state, needs)
            if found:
                broken = found
                guilty = self._steps[count - 1].operator.name if count else None
                break
        first = broken[0]
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        hint = "the parent itself does not keep it" if guilty is None else ""
        return LawBroken(first.law, first.place, first.reason + more, operator=guilty, hint=hint)


def _written(draft: Draft) -> bytes:
    """All that operators wrote into a draft."""
    return _encoder.encode((draft.changes, draft.applied, draft.fallbacks))


def envelope_digest(envelope: Envelope) -> str:
    """SHA-256 of what an envelope allows: its description lies outside, and a default is the same written out."""
    operators = {name: _given(settings) for name, settings in envelope.operators.items()}
    return digest({**_given(envelope), "description": None, "operators": operators})


def _given(spec: Envelope | Settings) -> dict[str, Any]:
    """The fields of a spec that are not as they are by default."""
    fields = msgspec.structs.fields(spec)
    return {
        field.name: msgspec.to_builtins(value)
        for field in fields
        if (value := getattr(spec, field.name)) != field.default and not (value in ({}, []) and not field.required)
    }


def _texts_of(added: Sequence[Tool | Skill]) -> Iterator[str]:
    """Every string that members which were added show to a model."""
    for member in added:
        yield member.name
        texts: list[Text] = [member.description]
        if isinstance(member, Skill):
            texts += [part.text for part in member.body] + [rule.text for rule in member.rules]
            yield from strings_in(msgspec.to_builtins(member.examples))
        else:
            texts += member.docs.values()
            yield from strings_in(member.parameters)
        for text in texts:
            yield from (part for part in text if isinstance(part, str))
