"""What hooks may look at, name and rewrite at each event: the runtime's tables, and the compiler's copies of them."""

from __future__ import annotations

from typing import get_args

import pytest
from hook_scenes import EVENTS, TOOLS, scene

from harnessctl.compile import events as compiled
from harnessctl.manifests.specs.hooks import Event
from harnessctl.runtime.checks.check import READABLE, WRITABLE
from harnessctl.runtime.checks.peers import EVENTS as PEER_EVENTS
from harnessctl.runtime.names import NAMES_AT, names_of


def test_the_compiler_knows_what_the_runtime_knows():
    assert compiled.READABLE == READABLE
    assert compiled.WRITABLE == WRITABLE
    assert {event: set(names) for event, names in compiled.EVENT_NAMES.items()} == {
        event: set(names) for event, names in NAMES_AT.items()
    }


def test_every_table_has_every_event():
    for table in (READABLE, NAMES_AT, PEER_EVENTS["claude"], PEER_EVENTS["gemini"]):
        assert set(table) == set(get_args(Event)) == set(EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_the_names_of_an_event(event):
    names = names_of(event, scene(event), {tool.name: tool for tool in TOOLS})
    assert set(names) == set(compiled.names_at(event))
    assert set(READABLE[event]) <= set(names)


@pytest.mark.parametrize("event", EVENTS)
def test_what_may_be_rewritten_is_what_is_looked_at_first(event):
    assert WRITABLE.get(event, READABLE[event][0]) == READABLE[event][0]
