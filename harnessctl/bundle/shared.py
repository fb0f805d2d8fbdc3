"""SharedDigest: the digest of states that share most of their parts with one parent, at a fraction of the cost.

What always holds: the digest is that of `files.state_digest`, to the byte. Parts that came from the parent unchanged are
not written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harnessctl.bundle.files import state_digest
from harnessctl.bundle.state import HarnessState, Hook, Skill, Tool
from harnessctl.storage import canonical_json, digest_bytes

_ENCODER = msgspec.json.Encoder(order="sorted")
#: Fields that hold JSON of any form: numbers and keys in it need care that msgspec does not take. A default is left out.
_OPEN: dict[type, tuple[str, ...]] = {
    Skill: ("examples",),
    Tool: ("parameters", "result", "run", "simulate", "timeout_s", "final"),
    Hook: ("when", "check", "observe", "timeout_s"),
}
_OPEN_OF_STATE = ("reply_schema", "scores", "judges", "servers", "code", "files")
#: msgspec leaves a default out when it is the very object.
_HOOK_TIMEOUT = Hook(id="", event="stop").timeout_s


class SharedDigest:
    """Digests of variants of `parent`, which is kept."""

    def __init__(self, parent: HarnessState) -> None:
        self._parent = parent
        #: By id, with the object itself so that the id stays its own.
        self._known: dict[int, tuple[Any, Any]] = {}
        for member in (*parent.skills, *parent.tools, *parent.hooks):
            for field in _OPEN[type(member)]:
                self._keep(getattr(member, field))
            whole = self._with_raw(member)
            self._known[id(member)] = (member, msgspec.Raw(_ENCODER.encode(whole)))
        self._keep(parent.prompt.inputs)
        for field in _OPEN_OF_STATE:
            self._keep(getattr(parent, field))
        for limit in parent.limits.values():
            self._known[id(limit)] = (limit, self._raw(limit))

    def digest(self, state: HarnessState) -> str:
        """The digest of `state`."""
        try:
            return digest_bytes(self._encoded(state))
        except UnicodeEncodeError:  # a lone surrogate; the long way names it
            return state_digest(state)

    def _encoded(self, state: HarnessState) -> bytes:
        fields: dict[str, Any] = {name: self._raw(value) for name in _OPEN_OF_STATE if (value := getattr(state, name))}
        fields["skills"] = [self._member(member) for member in state.skills]
        fields["tools"] = [self._member(member) for member in state.tools]
        fields["hooks"] = [self._member(member) for member in state.hooks]
        if state.prompt.inputs:
            fields["prompt"] = msgspec.structs.replace(state.prompt, inputs=self._raw(state.prompt.inputs))
        fields["limits"] = self._named({name: self._raw(limit) for name, limit in state.limits.items()}, state.limits)
        surface = state.surface
        if not _are_ascii(surface.tools, surface.skills, surface.parameters, *surface.parameters.values(), surface.parameter_order):  # fmt: skip
            fields["surface"] = self._raw(surface)
        return _ENCODER.encode(msgspec.structs.replace(state, **fields))

    def _keep(self, value: Any) -> None:
        if isinstance(value, (dict, list)):
            self._known[id(value)] = (value, msgspec.Raw(canonical_json(msgspec.to_builtins(value))))

    def _raw(self, value: Any) -> msgspec.Raw:
        known = self._known.get(id(value))
        return known[1] if known is not None else msgspec.Raw(canonical_json(msgspec.to_builtins(value)))

    def _named(self, members: dict[str, Any], whole: Any) -> Any:
        """`members`, whose values are written already, or `whole` written where a key may not be sorted as it should."""
        return members if _are_ascii(members) else self._raw(whole)

    def _member(self, member: Skill | Tool | Hook) -> Any:
        known = self._known.get(id(member))
        return known[1] if known is not None else self._with_raw(member)

    def _with_raw(self, member: Skill | Tool | Hook) -> Any:
        fields: dict[str, Any] = {}
        for name in _OPEN[type(member)]:
            value = getattr(member, name)
            if value or (value is not None and not isinstance(value, (dict, list))):
                fields[name] = self._raw(value)
        if isinstance(member, Tool) and member.docs and not _are_ascii(member.docs):
            fields["docs"] = self._raw(member.docs)
        if isinstance(member, Hook) and member.timeout_s is _HOOK_TIMEOUT:
            del fields["timeout_s"]
        return msgspec.structs.replace(member, **fields) if fields else member


def _are_ascii(*mappings: Mapping[str, Any]) -> bool:
    """Whether all keys are ASCII, so that every way of sorting them is the same."""
    return all("".join(mapping).isascii() for mapping in mappings)
