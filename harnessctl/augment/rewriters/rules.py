"""Rules: wordings made without a model, from phrases that may stand for each other and clauses that may be turned.

What always holds: equal texts have equal wordings in equal order, on any machine; each keeps law h; references and
quotations may move and are never altered.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

from harnessctl.augment.laws.wording import wording_faults
from harnessctl.augment.operator import TextKind
from harnessctl.augment.rewriters.atoms import Atoms
from harnessctl.augment.rewriters.clauses import forms, stands_alone
from harnessctl.augment.rewriters.frames import framed
from harnessctl.augment.rewriters.lexicon import Site, sites, substituted
from harnessctl.augment.rewriters.ranking import choose
from harnessctl.augment.rewriters.sentences import Piece, pieces
from harnessctl.bundle.text import Ref, Text

#: How many wordings a text has at most.
MOST = 16
#: Texts with more characters are documents, of which a few wordings are enough.
_LONG_CHARS = 1500
_MOST_OF_LONG = 8
#: How many texts keep their answers: more than a large harness has.
_TEXTS_KEPT = 4096
_FORMS = 6
_CHOICES = 24
_CANDIDATES = 64
_FRAMES = 12
#: In a text of several sentences each is checked by itself; in one of many, fewer choices are kept for each.
_MANY_SENTENCES = 4
_CHOICES_OF_MANY = 6


class RulesRewriter:
    """The offline rewriter. Answers are kept by content, those of the last few thousand texts."""

    name = "rules"

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._kept: dict[tuple[TextKind, tuple[str | Ref, ...]], list[Text]] = {}

    def wordings(self, text: Text, kind: TextKind) -> Sequence[Text]:
        """Other wordings of `text`, those that differ most first; see Rewriter."""
        key = (kind, tuple(text))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._make(text, kind)
            if len(self._kept) > _TEXTS_KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def _make(self, text: Text, kind: TextKind) -> list[Text]:
        atoms = Atoms(text)
        cut = pieces(atoms.string)
        is_open = [piece for piece in cut if piece.open]
        if not is_open:
            return []
        most = self._most if len(atoms.string) <= _LONG_CHARS else min(self._most, _MOST_OF_LONG)
        plain = [_plain(piece) if piece.open else [] for piece in cut]
        if len(is_open) > 1:
            kept = _CHOICES if len(is_open) < _MANY_SENTENCES else _CHOICES_OF_MANY
            plain = [_lawful(atoms, piece, bodies, kept) for piece, bodies in zip(cut, plain, strict=True)]
        return [
            atoms.text(string)
            for string in choose(
                atoms.string,
                _joined(cut, plain),
                _framed_texts(cut, plain, kind),
                most,
                lambda string: not wording_faults(text, atoms.text(string)),
            )
        ]


def _lawful(atoms: Atoms, piece: Piece, bodies: list[str], most: int) -> list[str]:
    """The first `most` of `bodies` that keep law h by themselves, so that no sentence spoils the others."""
    before = atoms.text(piece.body)
    keeps = (body for body in bodies if not wording_faults(before, atoms.text(body)))
    return list(islice(keeps, most))


def _plain(piece: Piece) -> list[str]:
    """Other bodies of a sentence without a frame, the original left out."""
    out: dict[str, None] = {}
    turned = forms(piece.body) if "?" not in piece.tail else ()
    shapes = list(dict.fromkeys([piece.body, *islice(turned, _FORMS)]))
    for shape in shapes:
        found = sites(shape)
        for chosen in _choices(found):
            out[substituted(shape, chosen)] = None
    out.pop(piece.body, None)
    if ";" in piece.body and "(" not in piece.body:
        for body in list(out)[: _CHOICES // 2]:
            head, _, tail = body.partition("; ")
            if tail and ";" not in tail and head and tail[0].isalpha() and stands_alone(tail):
                out[f"{head}. {tail[:1].upper()}{tail[1:]}"] = None
    return _spread(list(out))


def _choices(found: list[Site]) -> Iterator[list[tuple[Site, str]]]:
    """What to put at each site: all there is where that is little, else a spread of it; most changes first."""
    options = [(*site.alternatives, None) for site in found]
    if math.prod(map(len, options)) <= _CHOICES:
        whole = sorted(itertools.product(*options), key=lambda picks: picks.count(None))
    else:
        whole = [tuple(_pick(number, at, each) for at, each in enumerate(options)) for number in range(_CHOICES)]
    for picks in whole:
        yield [(site, words) for site, words in zip(found, picks, strict=True) if words is not None]


def _pick(number: int, at: int, options: tuple[str | None, ...]) -> str | None:
    """The choice of number `number` at site `at`: scattered, so that no two sites turn in step; later ones leave some."""
    scattered = zlib.crc32(bytes((number, at & 0xFF)))
    return options[scattered % (len(options) - 1 if number < _CHOICES // 2 else len(options))]


def _spread(members: list[str]) -> list[str]:
    """`members` with neighbours set apart, so that the first few are of all shapes."""
    step = max(1, len(members) // 8)
    return [member for start in range(step) for member in members[start::step]]


def _joined(cut: list[Piece], bodies: list[list[str]]) -> Iterator[str]:
    """Texts in which every open piece that has other bodies takes one."""
    if not any(bodies):
        return
    if math.prod(len(others) or 1 for others in bodies) <= _CANDIDATES:
        for picks in itertools.product(*(others or [piece.body] for piece, others in zip(cut, bodies, strict=True))):
            yield "".join(
                itertools.chain.from_iterable((body, piece.tail) for body, piece in zip(picks, cut, strict=True))
            )
        return
    for number in range(_CANDIDATES):
        parts: list[str] = []
        for at, (piece, others) in enumerate(zip(cut, bodies, strict=True)):
            body = others[zlib.crc32(bytes((number, at & 0xFF))) % len(others)] if others else piece.body
            parts += [body, piece.tail]
        yield "".join(parts)


def _framed_texts(cut: list[Piece], plain: list[list[str]], kind: TextKind) -> Iterator[str]:
    """Texts in which the first sentence stands in a frame; the others are as in `_joined`."""
    at_first = next((at for at, piece in enumerate(cut) if piece.open and not piece.heading), None)
    if at_first is None:
        at_first = next(at for at, piece in enumerate(cut) if piece.open)
    first, others = cut[at_first], plain[at_first]
    if first.tail.startswith((":", "：")):
        return
    for number in range(_FRAMES):
        for body in (first.body, *others[number % max(1, len(others)) :][:1]):
            in_frames = list(islice(framed(body, kind, heading=first.heading), _FRAMES))
            parts: list[str] = []
            for at, (piece, options) in enumerate(zip(cut, plain, strict=True)):
                words = options[zlib.crc32(bytes((number, at & 0xFF))) % len(options)] if options else piece.body
                parts += [in_frames[number % len(in_frames)] if at == at_first else words, piece.tail]
            yield "".join(parts)
