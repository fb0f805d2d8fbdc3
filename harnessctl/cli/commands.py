"""Commands of a sweep: one after another, each a run of its own, up to the first that fails (a missed gate is no failure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import typer

#: The exit code of what ran and did not reach what it had to; what else was asked for is still carried out.
GATE_MISSED = 3


class Done(Protocol):
    """What a command came to, which is its JSON, too."""

    @property
    def code(self) -> int:
        """The exit code."""
        ...


class Command(Protocol):
    """One run that is asked for."""

    def config_yaml(self) -> str:
        """The resolved recipe. HarnessctlError for a key that is wrong."""
        ...

    def run(self) -> Any:
        """Carry it out; a `Done`."""
        ...


def carry_out(commands: Sequence[Command], *, cfg: bool, json: bool) -> None:
    """Run them, and exit with the code of the one that failed, else with 3 where a gate was missed; with `cfg` only print
    their recipes."""
    from harnessctl import recipes
    from harnessctl.cli import output

    resolved = [
        command.config_yaml().rstrip() for command in commands
    ]  # a wrong key of the last is said before the first
    if cfg and json:
        plain = [recipes.from_yaml(text, source="--cfg") for text in resolved]
        return output.json_data(plain if len(commands) > 1 else plain[0])
    if cfg:
        return output.data("\n".join(resolved))
    done: list[Done] = []
    for command in commands:
        done.append(command.run())
        if done[-1].code not in (0, GATE_MISSED):
            break
    if json:
        output.json_data(done if len(commands) > 1 else done[0])
    raise typer.Exit(done[-1].code or max(one.code for one in done))
