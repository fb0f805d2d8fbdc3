"""What hooks may look at, name and rewrite at each event: the tables against what the runtime does."""

from __future__ import annotations

from typing import get_args

import pytest
from hook_scenes import EVENTS, TOOLS, scene

from harnessctl.manifests.events import EVENT_NAMES, READABLE, WRITABLE, names_at
from harnessctl.manifests.specs.hooks import Event
from harnessctl.runtime.checks.peers import EVENTS as PEER_EVENTS
from harnessctl.runtime.names import names_of


def test_every_table_has_every_event():
    for table in (READABLE, EVENT_NAMES, PEER_EVENTS["claude"], PEER_EVENTS["gemini"]):
        assert set(table) == set(get_args(Event)) == set(EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_the_names_of_an_event(event):
    names = names_of(event, scene(event), {tool.name: tool for tool in TOOLS})
    assert set(names) == set(names_at(event))
    assert set(READABLE[event]) <= set(names)


@pytest.mark.parametrize("event", EVENTS)
def test_what_may_be_rewritten_is_what_is_looked_at_first(event):
    assert WRITABLE.get(event, READABLE[event][0]) == READABLE[event][0]
