"""Hook file: one foreign hook file, read hook by hook into the project's form."""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path
from typing import Any

from harnessctl.errors import Faults
from harnessctl.importing.hook_events import EVENTS, Counterpart, Dialect, dialect_of, reason_without
from harnessctl.importing.hook_scripts import Missing, prepare
from harnessctl.importing.names import KnownNames, free, slug
from harnessctl.importing.placing import place as put
from harnessctl.importing.report import Entry
from harnessctl.importing.sources import JsonSource
from harnessctl.importing.yaml_text import to_yaml
from harnessctl.manifests.load import load_text
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.hooks import Hooks

_OTHER_KEYS = frozenset({"hooks", "$schema", "description", "version"})
_HOOK_KEYS = frozenset({"type", "command", "args", "timeout", "async", "shell", "matcher", "name", "description", "id"})
_SIMPLE_MATCHER = re.compile(r"^[\w|-]+$")
_FAILED = ["error", "timeout", "denied", "invalid"]


class _NotCarried(Exception):
    """Why one hook is not written."""


class HookFile:
    """One foreign hook file on its way in. Scripts are looked for from its folder up to `bound`."""

    def __init__(self, path: Path, bound: Path, found: JsonSource, known: KnownNames, entry: Entry) -> None:
        self.path = path
        self.bound = bound
        self.found = found
        self.known = known
        self.entry = entry
        self.hooks: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.reasons: list[str] = []
        self.taken: set[str] = set()
        self.untimed = 0
        self.dialect: Dialect = dialect_of(set(found.value["hooks"]), found.value)

    def place(self, name: str, root: Path, *, force: bool, dry_run: bool) -> None:
        """Translate the file, check what comes out and put it into the project as `manifests/hooks/<name>.yaml`."""
        self.entry.name = name
        self._settings()
        target = f"manifests/hooks/{name}.yaml"
        self.taken = {hook for hook, path in self.known.hooks.items() if path != target}
        for event, groups in self.found.value["hooks"].items():
            self._event(event, groups)
        if not self.hooks:
            count = len(self.reasons)
            what = "its only hook cannot" if count == 1 else f"none of its {count} hooks can"
            reasons = list(dict.fromkeys(self.reasons))
            listed = "; ".join(reasons[:3]) + (
                f"; and {len(reasons) - 3} more reasons, below" if len(reasons) > 3 else ""
            )
            self.entry.refuse(f"{what} be carried over: {listed or 'they are empty'}")
            return
        self._general()
        try:
            text = to_yaml({"apiVersion": "harnessctl/v1", "kind": "Hooks", "hooks": self.hooks})
        except ValueError as error:
            self.entry.refuse(f"it cannot be written as YAML: {error}")
            return
        description = self.found.value.get("description")
        if isinstance(description, str) and description.strip():
            text = _comment(description) + text
        faults = Faults()
        document = load_text(target, text, faults)
        if document is not None:
            convert(document, "Hooks", Hooks, faults)
        if faults.errors:
            self.entry.refuse(
                f"what would be written does not compile: {faults.errors[0].render().partition(chr(10))[0]}"
            )
            return
        put(root, {**self.files, target: text.encode()}, self.entry, force=force, dry_run=dry_run)
        self.known.hooks.update({hook["id"]: target for hook in self.hooks})

    def _settings(self) -> None:
        other = [key for key in self.found.value if key not in _OTHER_KEYS]
        if other:
            line = self.found.line(other[0])
            self.entry.note("not carried over", line, f"what is not hooks: {', '.join(other)}")
        if self.found.value.get("disableAllHooks") is True:
            self.entry.note(
                "warning", self.found.line("disableAllHooks"), "the file switches all its hooks off; here they are on"
            )

    def _general(self) -> None:
        self.entry.note(
            "warning",
            0,
            "a program that cannot be launched blocks here (on_error: block); write on_error: pass to let it go on, as there",
        )
        if self.untimed:
            self.entry.note("warning", 0, f"no timeout is given for {self.untimed} of its hooks: 5 seconds hold here")
        if self.dialect == "cursor":
            self.entry.note(
                "warning",
                0,
                "Cursor's programs get Claude Code's fields on standard input here; exit codes mean the same",
            )

    def _event(self, event: str, groups: Any) -> None:
        counterpart = EVENTS[self.dialect].get(event)
        if not isinstance(groups, list):
            self._skip(("hooks", event), f"{event}: not a list")
            return
        for i, group in enumerate(groups):
            at: tuple[str | int, ...] = ("hooks", event, i)
            if not isinstance(group, dict):
                self._skip(at, f"{event}: not an object")
                continue
            nested = group.get("hooks")
            items = nested if isinstance(nested, list) else [group]
            for j, item in enumerate(items):
                place_at = (*at, "hooks", j) if items is nested else at
                try:
                    if counterpart is None:
                        raise _NotCarried(f"{event}: {reason_without(event)}")
                    if not isinstance(item, dict):
                        raise _NotCarried(f"{event}: not an object")
                    self._hook(counterpart, event, group, item, place_at)
                except _NotCarried as reason:
                    self._skip(place_at, str(reason))

    def _skip(self, at: tuple[str | int, ...], reason: str) -> None:
        self.reasons.append(reason)
        self.entry.note("not carried over", self.found.line(*at), reason)

    def _hook(
        self,
        counterpart: Counterpart,
        event: str,
        group: dict[str, Any],
        item: dict[str, Any],
        at: tuple[str | int, ...],
    ) -> None:
        kind = item.get("type", "command")
        if kind != "command":
            hint = ": a judge harness does that here" if kind in ("prompt", "agent") else ""
            raise _NotCarried(f"{event}: a hook of type {kind!r}, not a command{hint}")
        if "if" in item:
            raise _NotCarried(f"{event}: its condition `if: {item['if']}` is about the commands of a coding agent")
        when = self._when(counterpart, event, group)
        command = item.get("command")
        words = isinstance(command, list) and all(isinstance(word, str) for word in command)
        if not (isinstance(command, str) or words) or not command:
            raise _NotCarried(f"{event}: it has no command")
        if item.get("shell") not in (None, "bash", "sh"):
            raise _NotCarried(f"{event}: its shell is {item['shell']!r}; bash and sh are run here")
        if self.dialect == "cursor" and "permission" in str(command):
            raise _NotCarried(f"{event}: it answers with Cursor's `permission`, which no protocol here reads")
        if "args" in item and isinstance(item["args"], list) and isinstance(command, str):
            command = [command, *(str(word) for word in item["args"])]
        folder = f"manifests/hooks/{self.entry.name}"
        try:
            prepared = prepare(command, self.path.parent, self.bound, folder)
        except Missing as missing:
            raise _NotCarried(f"{event}: {missing}") from None
        if self.dialect == "cursor" and any(b'"permission"' in data for data in prepared.files.values()):
            raise _NotCarried(f"{event}: its script answers with Cursor's `permission`, which no protocol here reads")
        self._write(counterpart, group, item, at, when, prepared.command)
        self.files |= prepared.files
        for change in prepared.changed:
            self.entry.note("changed", self.found.line(*at), change)
        if prepared.reads:
            self.entry.note(
                "not carried over", self.found.line(*at),
                f"{self.hooks[-1]['id']} reads {', '.join(prepared.reads)} from the environment; variables that are not "
                f"listed under `env` are not passed on, and none is listed: add those that it may see",
            )  # fmt: skip

    def _write(
        self,
        counterpart: Counterpart,
        group: dict[str, Any],
        item: dict[str, Any],
        at: tuple[str | int, ...],
        when: dict[str, Any],
        command: dict[str, Any],
    ) -> None:
        line = self.found.line(*at)
        given = next((str(x) for x in (item.get("id"), item.get("name"), group.get("id")) if x), "")
        ids = {hook["id"] for hook in self.hooks} | self.taken
        wanted = slug(given) or slug(f"{self.entry.name}-{counterpart.event.replace('_', '-')}")
        hook: dict[str, Any] = {"id": free(wanted, ids), "event": counterpart.event}
        if given and hook["id"] != given:
            self.entry.note("changed", line, f"the hook {given!r} is called `{hook['id']}`")
        description = item.get("description") or group.get("description")
        if isinstance(description, str) and description.strip():
            hook["description"] = description.strip()
        if when:
            hook["when"] = when
        told = {"command": {**command, "protocol": "gemini" if self.dialect == "gemini" else "claude"}}
        if item.get("async") is True:
            hook["observe"] = told
        else:
            hook["check"] = told
            hook["otherwise"] = dict(counterpart.action)
        if (seconds := self._timeout(item, line)) is not None:
            hook["timeout_s"] = seconds
        other = [key for key in item if key not in _HOOK_KEYS]
        if other:
            self.entry.note("not carried over", line, f"{hook['id']}: {', '.join(other)}")
        self.hooks.append(hook)

    def _when(self, counterpart: Counterpart, event: str, group: dict[str, Any]) -> dict[str, Any]:
        """The condition that a matcher is; _NotCarried when it matches no tool of this project."""
        out: dict[str, Any] = {"result": _FAILED} if counterpart.failed else {}
        matcher = group.get("matcher")
        if counterpart.event not in ("pre_tool", "post_tool") or matcher in (None, "", "*", ".*"):
            return out
        names = sorted(self.known.tools)
        try:
            tools = [tool for tool in names if any(_matches(str(matcher), name) for name in self._called(tool))]
        except re.error as error:
            raise _NotCarried(f"{event}: its matcher {matcher!r} is not a regular expression: {error}") from None
        if not tools:
            have = f"has {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" if names else "has none"
            raise _NotCarried(f"{event}: its matcher {matcher!r} matches no tool of this project, which {have}")
        return {"tools": tools, **out}

    def _called(self, tool: str) -> tuple[str, ...]:
        """What matchers may call a tool: its name, and `mcp__server__tool` where a server carries it out."""
        of_server = self.known.mcp.get(tool)
        return (tool,) if of_server is None else (tool, of_server)

    def _timeout(self, item: dict[str, Any], line: int) -> float | int | None:
        given = item.get("timeout")
        if given is None:
            self.untimed += 1
            return None
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            self.entry.note("not carried over", line, f"the timeout {given!r} is no number of seconds")
            return None
        return given / 1000 if self.dialect == "gemini" else given


def _matches(matcher: str, tool: str) -> bool:
    if _SIMPLE_MATCHER.match(matcher):
        return tool in matcher.split("|")
    return re.fullmatch(matcher, tool) is not None


def _comment(text: str) -> str:

    return "".join(f"# {line}\n" for line in textwrap.wrap(" ".join(text.split()), 108))
