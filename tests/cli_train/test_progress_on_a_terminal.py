"""The progress of a training on a narrow terminal: how far it is stays in sight, whatever there is to say."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harnessctl.cli import output
from harnessctl.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_talk_leaves_room_for_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(output, "console", lambda **_: Console(file=screen, width=80, force_terminal=True))
    with Progress("rl", total=40) as progress:
        progress.advance("loss 0.1234  tokens/s 5,200  " + "reward 0.125  " * 12)
    lines = [line for line in screen.getvalue().replace("\r", "\n").splitlines() if "loss" in line]
    assert lines and all("1/40" in line and "loss 0.1234  tokens/s" in line for line in lines)
