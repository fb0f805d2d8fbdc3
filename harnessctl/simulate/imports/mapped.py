"""Any log as scenarios, by a mapping (kind LogMapping) of its fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec

from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.load import PathPart, load_yaml
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.mapping import Calls, GoldFields, LogMapping, Messages
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Fact, Gold, GoldCall, Logged, LoggedCall, Scenario
from harnessctl.records.trajectory import Route, StopReason, ToolStatus
from harnessctl.simulate.imports.fields import Field, FieldError, compile_field, list_at
from harnessctl.simulate.language import language_of
from harnessctl.storage import read_bytes

#: How gold may say that a request ends.
_GOLD_STOPS = ("replied", "refused", "silent", "hook_blocked")


class MappedReader:
    """Reads the items of a log as a mapping says. FaultsError when the mapping is none."""

    def __init__(self, path: Path, harness: str | None) -> None:
        faults = Faults()
        document = load_yaml(str(path), read_bytes(path), faults)
        spec = convert(document, "LogMapping", LogMapping, faults) if document is not None else None
        if document is None or spec is None:
            faults.raise_if_errors()
            raise AssertionError("a mapping that cannot be read has a fault")
        self.spec = spec
        self._document, self._faults = document, faults
        if (spec.text is None) == (spec.messages is None):
            got = "neither" if spec.text is None else "both"
            faults.add(document.fault("mapping-field", "one of `text` and `messages` is needed", got=got))
        field, logged, gold = self._field, spec.logged, spec.gold or GoldFields()
        self._id, self._text, self._room = field(spec.id, "id"), field(spec.text, "text"), field(spec.room, "room")
        self._session, self._viewer = field(spec.session, "session"), field(spec.viewer, "viewer")
        self._language, self._intent = field(spec.language, "language"), field(spec.intent, "intent")
        self._context = {name: field(source, "context", name) for name, source in spec.context.items()}
        self._messages = self._fields(spec.messages or Messages(at=""), ("text", "viewer", "ts"), "messages")
        self._logged = self._fields(logged, ("reply", "skills", "stop", "route"), "logged")
        self._logged_calls = _Calls(self, logged.tools, "logged", "tools")
        self._gold = self._fields(gold, ("skills", "facts", "claims", "replies", "route", "stop"), "gold")
        self._known = {name: field(source, "gold", "known", name) for name, source in gold.known.items()}
        self._gold_calls = _Calls(self, gold.calls, "gold", "calls")
        faults.raise_if_errors()
        name = harness or spec.harness
        if name is None:
            raise UsageError(f"{path} names no harness", hint="`harness: NAME` in the mapping, or --harness NAME")
        self._harness = name

    def _field(self, source: Any, *at: PathPart) -> Field:
        """A field of the mapping, by what stands at a path of it."""

        def fault(message: str, *, got: str, allowed: str, hint: str = "") -> None:
            self._faults.add(self._document.fault("mapping-field", message, *at, got=got, allowed=allowed, hint=hint))

        return compile_field(source, ".".join(map(str, at)), fault)

    def _fields(self, spec: Any, names: tuple[str, ...], *at: PathPart) -> dict[str, Field]:
        return {name: self._field(getattr(spec, name), *at, name) for name in names}

    def scenario(self, item: Any, place: str, number: int) -> Scenario | None:
        """The scenario of one item. FieldError says which field is wrong, and how."""
        request = self._request(item, number)
        texts = "\n".join(message.text for message in request.viewer_messages())
        return Scenario(
            id=request.id,
            request=request,
            harness=self._harness,
            intent=self._intent.text(item) or "unknown",
            family="log",
            language=self._language.text(item) or language_of(texts),
            source=place,
            gold=self._gold_of(item),
            logged=self._logged_of(item),
        )

    def _request(self, item: Any, number: int) -> CommentInput:
        viewer = self._viewer.text(item)
        text: str | None = None
        messages: list[ViewerMessage] | None = None
        if self.spec.messages is not None:
            members = list_at(item, self.spec.messages.at, "messages")
            messages = [self._message(member, viewer) for member in members]
            if not messages:
                raise FieldError(f"messages: there is none at {self.spec.messages.at}")
        else:
            text = self._text.text(item)
            if text is None or not text.strip():
                raise FieldError(f"text: there is none at {self.spec.text}")
            if viewer is not None:
                text, messages = None, [ViewerMessage(text, viewer)]
        found = {name: field.raw(item) for name, field in self._context.items()}
        request = CommentInput(
            id=self._id.text(item) or f"{self.spec.name}-{number}",
            text=text,
            messages=messages,
            room=self._room.text(item),
            session=self._session.text(item),
            context={name: value for name, value in found.items() if value is not None},
        )
        try:
            return msgspec.convert(msgspec.to_builtins(request), CommentInput)
        except msgspec.ValidationError as error:
            raise FieldError(str(error)) from error

    def _message(self, member: Any, viewer: str | None) -> ViewerMessage:
        text = self._messages["text"].text(member)
        if text is None:
            raise FieldError("messages: one has no text")
        ts = self._messages["ts"].raw(member)
        name = self._messages["viewer"].text(member) or viewer or "viewer"
        return ViewerMessage(text, name, ts if isinstance(ts, (str, int, float)) else None)

    def _logged_of(self, item: Any) -> Logged | None:
        logged = Logged(
            reply=self._logged["reply"].text(item) or "",
            skills=self._logged["skills"].texts(item),
            tools=[
                LoggedCall(tool=call.tool, arguments=call.arguments, status=status)
                for call, status in self._logged_calls.read(item)
            ],
            stop=_one_of(self._logged["stop"], item, get_args(StopReason)),
            route=_one_of(self._logged["route"], item, get_args(Route)),
        )
        return None if logged == Logged() else logged

    def _gold_of(self, item: Any) -> Gold | None:
        if self.spec.gold is None:
            return None
        gold = {name: field.raw(item) for name, field in self._known.items()}
        calls = [call for call, _ in self._gold_calls.read(item)]
        return Gold(
            skills=self._gold["skills"].texts(item),
            calls=calls,
            facts=[Fact(any=[text]) for text in self._gold["facts"].texts(item)],
            claims=self._gold["claims"].texts(item),
            replies=self._gold["replies"].texts(item),
            route=_one_of(self._gold["route"], item, get_args(Route)) or "public",  # type: ignore[arg-type]
            stop=_one_of(self._gold["stop"], item, _GOLD_STOPS) or "replied",  # type: ignore[arg-type]
            known={name: value for name, value in gold.items() if value is not None},
        )


class _Calls:
    """The calls of an item, in order, with their status."""

    def __init__(self, reader: MappedReader, spec: Calls | None, *at: PathPart) -> None:
        self._spec = spec
        self._name = ".".join(map(str, at))
        self._fields = {} if spec is None else reader._fields(spec, ("tool", "arguments", "status"), *at)

    def read(self, item: Any) -> list[tuple[GoldCall, ToolStatus]]:
        """(call, status) of each call that the mapping picks."""
        spec = self._spec
        if spec is None:
            return []
        out: list[tuple[GoldCall, ToolStatus]] = []
        for member in list_at(item, spec.at, self._name):
            tool = self._fields["tool"].text(member)
            if not tool:
                raise FieldError(f"{self._name}: a call names no tool at {spec.tool}")
            if tool in spec.without or (spec.only is not None and tool not in spec.only):
                continue
            arguments = self._fields["arguments"].object(member)
            status = _one_of(self._fields["status"], member, get_args(ToolStatus)) or "ok"
            call = GoldCall(tool=tool, arguments=arguments, compare=spec.compare.get(tool))
            out.append((call, status))  # type: ignore[arg-type]
        return out


def _one_of(field: Field, item: Any, allowed: tuple[str, ...]) -> str | None:
    value = field.text(item)
    if value is not None and value not in allowed:
        raise FieldError(f"{field.name}: got {value!r}; allowed {', '.join(allowed)}")
    return value
