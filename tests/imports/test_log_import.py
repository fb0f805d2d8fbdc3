from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.errors import FaultsError, RecordError, StorageError, UsageError
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Scenario
from harnessctl.records.trajectory import ToolCall, Trajectory
from harnessctl.simulate.imports import import_log
from harnessctl.simulate.language import language_of
from harnessctl.trajectory import ViewerNames, encode_trajectory

MAPPING = """\
apiVersion: harnessctl/v1
kind: LogMapping
name: chat
harness: shop
"""


def trajectory(id_: str, text: str, **changed: Any) -> Trajectory:
    request = {"id": id_, "text": text, **changed.pop("request", {})}
    if "messages" in request:
        del request["text"]
    given = {
        "id": id_,
        "bundle": "b" * 64,
        "harness": "shop",
        "loop": "harness",
        "model": "m",
        "request": request,
        "context": {},
        "limits": {},
        "started": "2026-01-01T00:00:00+00:00",
        "took_s": 1.0,
        "stop": "replied",
        "reply": "89 yuan.",
        "route": "public",
        "skills": ["item-qa", "item-qa"],
        "tools": [
            ToolCall(round=1, id="a", name="load_skill", arguments={"skill": "item-qa"}, status="ok", started_s=0,
                     ended_s=0, result={"skill": "item-qa", "loaded": True}),
            ToolCall(round=1, id="b", name="get_price", arguments={"item": "teapot"}, status="ok", started_s=0,
                     ended_s=0, result={"price": 89}),
        ],
    }  # fmt: skip
    return Trajectory(**(given | changed))


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    def write(*trajectories: Trajectory) -> Path:
        path = tmp_path / "trajectories.jsonl"
        path.write_bytes(b"".join(encode_trajectory(t) + b"\n" for t in trajectories))
        return path

    return write


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[..., tuple[list[Scenario], Any]]:
    """Imports items (a list: JSON; text: JSON Lines) with the fields of a mapping."""

    def run(items: Any, fields: str, **options: Any) -> tuple[list[Scenario], Any]:
        path = tmp_path / ("log.jsonl" if isinstance(items, str) else "log.json")
        path.write_text(items if isinstance(items, str) else json.dumps(items))
        mapping = tmp_path / "mapping.yaml"
        mapping.write_text(MAPPING + fields)
        return import_log(path, mapping=mapping, **options)

    return run


def test_a_trajectory_becomes_a_scenario_that_awaits_gold(log):
    path = log(trajectory("1", "how much is the teapot", request={"room": "r1"}, world="w" * 64))
    (scenario,), report = import_log(path)
    assert scenario.gold is None
    assert (scenario.id, scenario.harness, scenario.intent, scenario.family) == ("1", "shop", "unknown", "log")
    assert scenario.request == CommentInput(id="1", text="how much is the teapot", room="r1")
    assert scenario.world == "w" * 64
    assert scenario.source == f"{path}:1"
    assert scenario.logged is not None
    assert scenario.logged.skills == ["item-qa"]
    assert [(call.tool, call.arguments) for call in scenario.logged.tools] == [("get_price", {"item": "teapot"})]
    assert (scenario.logged.reply, scenario.logged.stop, scenario.logged.route) == ("89 yuan.", "replied", "public")
    assert report.render() == "1 items: 1 scenarios, 0 folded, 0 passed over, 0 refused"


def test_the_same_question_in_the_same_room_is_folded_and_counted(log):
    path = log(
        trajectory("1", "how much"),
        trajectory("2", " how much "),
        trajectory("3", "how much", request={"room": "other"}),
        trajectory("4", "how many"),
        trajectory("5", "how much", session="s", request={"session": "s"}),
    )
    scenarios, report = import_log(path)
    assert [(s.id, s.logged and s.logged.times) for s in scenarios] == [("1", 3), ("3", 1), ("4", 1)]
    assert (report.items, report.taken, report.folded) == (5, 3, 2)


def test_turns_of_a_conversation_stay_apart_and_in_order(log):
    turns = [trajectory(str(n), "yes", session="s", request={"session": "s"}, turn=n) for n in range(3)]
    scenarios, report = import_log(log(trajectory("x", "yes"), *turns))
    assert [(s.id, s.request.session) for s in scenarios] == [("x", None), ("0", "s"), ("1", "s"), ("2", "s")]
    assert report.folded == 0


def test_ids_that_come_again_are_made_unique(log):
    scenarios, _ = import_log(
        log(trajectory("1", "a"), trajectory("1", "b"), trajectory("1", "c"), trajectory("1~2", "d"))
    )
    assert [s.id for s in scenarios] == ["1", "1~2", "1~3", "1~2~2"]
    assert [s.request.id for s in scenarios] == [s.id for s in scenarios]


def test_what_was_cancelled_is_passed_over_and_what_is_no_trajectory_refused(log):
    path = log(trajectory("1", "a"), trajectory("2", "b", stop="cancelled"))
    with path.open("a") as file:
        file.write('{"format": "harnessctl/trajectory.v0"}\n[]\nnot json\n{"format": "harnessctl/trajectory.v1"}\n')
        file.write('{"torn": ')
    scenarios, report = import_log(path)
    assert [s.id for s in scenarios] == ["1"]
    assert (report.items, report.passed_over, report.refused) == (6, 1, 4)
    assert [r.place.rpartition(":")[2] for r in report.refusals] == ["3", "4", "5", "6"]
    assert "trajectory.v0" in report.refusals[0].reason
    assert "--mapping" in report.refusals[1].reason
    assert "not JSON" in report.refusals[2].reason


def test_a_run_folder_is_taken_by_its_trajectories(log):
    scenarios, _ = import_log(log(trajectory("1", "a")).parent)
    assert len(scenarios) == 1


def test_viewers_are_renamed_as_runs_rename_them(log):
    said = [{"text": "hi", "viewer": "Mei Lin"}, {"text": "how much", "viewer": "Bo"}]
    path = log(trajectory("1", "", request={"messages": said}, reply="Mei Lin, it is 89 yuan."))
    kept, _ = import_log(path)
    dropped, report = import_log(path, viewers=ViewerNames("drop"))
    hashed, _ = import_log(path, viewers=ViewerNames("hash", b"key"))
    assert [m.viewer for m in kept[0].request.viewer_messages()] == ["Mei Lin", "Bo"]
    assert [m.viewer for m in dropped[0].request.viewer_messages()] == ["viewer-1", "viewer-2"]
    assert all(m.viewer.startswith("viewer-") and len(m.viewer) == 19 for m in hashed[0].request.viewer_messages())
    assert report.named == 1
    assert "still name a viewer" in report.render()


def test_a_mapping_reads_pointers_constants_and_defaults(mapped):
    items = [
        {"n": 7, "q": {"title": "Price?", "body": "of the pot"}, "who": "Bo", "where": None, "lang": "de", "link": 3},
        {"q": {"title": "多少钱"}, "where": "r2"},
    ]
    fields = """\
id: /n
text: [/q/title, /q/body]
viewer: /who
room: {at: /where, default: r1}
language: /lang
intent: item-qa
context: {current_link_id: /link, shop: {value: /not/a/pointer}}
"""
    (first, second), report = mapped(items, fields)
    assert first.request.messages == [ViewerMessage("Price?\nof the pot", "Bo")]
    assert (first.id, first.request.room, first.language, first.intent) == ("7", "r1", "de", "item-qa")
    assert first.request.context == {"current_link_id": 3, "shop": "/not/a/pointer"}
    assert (second.id, second.request.text, second.request.room, second.language) == ("chat-2", "多少钱", "r2", "zh")
    assert second.request.context == {"shop": "/not/a/pointer"}
    assert (first.gold, first.logged, report.with_gold) == (None, None, 0)


def test_a_mapping_reads_several_comments_what_was_answered_and_gold(mapped):
    item = {
        "comments": [{"t": "hi", "u": "Mei", "at": 5}, {"t": "how much", "u": "Bo"}],
        "answer": {"text": "89 yuan", "end": "replied", "calls": [
            {"function": {"name": "get_price", "arguments": '{"item": "pot"}'}},
            {"function": {"name": "log", "arguments": "{}"}},
        ]},
        "right": {"calls": [{"name": "get_price", "arguments": {"item": "pot", "note": "x"}}], "say": ["89"]},
    }  # fmt: skip
    fields = """\
messages: {at: /comments, text: /t, viewer: /u, ts: /at}
logged:
  reply: /answer/text
  stop: /answer/end
  tools: {at: /answer/calls, tool: /function/name, arguments: /function/arguments, without: [log]}
gold:
  skills: item-qa
  facts: /right/say
  calls: {at: /right/calls, compare: {get_price: [item]}}
"""
    (scenario,), report = mapped([item], fields)
    assert [(m.text, m.viewer, m.ts) for m in scenario.request.viewer_messages()] == [
        ("hi", "Mei", 5),
        ("how much", "Bo", None),
    ]
    assert scenario.logged is not None and scenario.gold is not None
    assert [(c.tool, c.arguments) for c in scenario.logged.tools] == [("get_price", {"item": "pot"})]
    assert scenario.gold.skills == ["item-qa"]
    assert [(c.tool, c.arguments, c.compare) for c in scenario.gold.calls] == [
        ("get_price", {"item": "pot", "note": "x"}, ["item"])
    ]
    assert [f.any for f in scenario.gold.facts] == [["89"]]
    assert report.with_gold == 1


@pytest.mark.parametrize(
    ("item", "fields", "says"),
    [
        ({"a": ""}, "text: /a\n", "text: there is none at /a"),
        ({"a": [1]}, "text: /a\n", "text: /a is of type list; allowed text"),
        ({"a": True}, "text: /a\n", "type bool"),
        ({"a": "x", "c": 3}, "text: /a\nlogged: {tools: {at: /c}}\n", "logged.tools: /c is of type int; allowed a list"),
        ({"a": "x", "c": [{}]}, "text: /a\ngold: {calls: {at: /c}}\n", "gold.calls: a call names no tool"),
        ({"a": "x", "c": [{"name": "t", "arguments": "{"}]}, "text: /a\ngold: {calls: {at: /c}}\n", "is not JSON"),
        ({"a": "x", "s": "gone"}, "text: /a\ngold: {stop: /s}\n", "got 'gone'; allowed replied, refused"),
        ({"a": "x", "i": "y" * 300}, "text: /a\nid: /i\n", "length <= 200"),
        ({"m": []}, "messages: {at: /m}\n", "there is none at /m"),
    ],
)  # fmt: skip
def test_an_item_that_does_not_fit_is_refused_with_its_field(mapped, item, fields, says):
    scenarios, report = mapped([item], fields)
    assert scenarios == []
    assert says in report.refusals[0].reason
    assert report.refusals[0].place.endswith("log.json: item 1")


@pytest.mark.parametrize(
    ("fields", "line", "says"),
    [
        ("", 1, "one of `text` and `messages` is needed; got neither"),
        ("text: /a\nmessages: {at: /b}\n", 1, "got both"),
        ("text: /a~2\n", 5, "not a JSON Pointer"),
        ("text: {pointer: /a}\n", 5, "not of a form that can be read; got pointer"),
        ("text: /a\ncolour: /b\n", 6, "unknown field `colour`"),
        ("text: /a\ngold: {calls: {at: x}}\n", 6, "`at` is not of the form"),
    ],
)
def test_a_mapping_that_is_none_is_told_by_its_line(mapped, fields, line, says):
    with pytest.raises(FaultsError) as caught:
        mapped([{}], fields)
    assert f"mapping.yaml:{line}:" in caught.value.faults[0].render()
    assert says in caught.value.faults[0].render()


def test_a_log_that_cannot_be_read(tmp_path, mapped):
    with pytest.raises(StorageError, match="no such file"):
        import_log(tmp_path / "none.jsonl")
    with pytest.raises(RecordError, match="no list of items; got a value of type dict"):
        mapped({"data": []}, "text: /a\n")
    with pytest.raises(RecordError, match="at /rows there is no list of items; got nothing"):
        mapped({"data": []}, "text: /a\nitems: /rows\n")
    scenarios, _ = mapped({"data": [{"a": "x"}]}, "text: /a\nitems: /data\n")
    assert [s.request.text for s in scenarios] == ["x"]
    (tmp_path / "bad.json").write_text('[{"a": 1},\n {]')
    with pytest.raises(RecordError, match=r"bad\.json:2:"):
        import_log(tmp_path / "bad.json", mapping=tmp_path / "mapping.yaml")
    with pytest.raises(UsageError, match="names no harness"):
        (tmp_path / "mapping.yaml").write_text(MAPPING.replace("harness: shop\n", "") + "text: /a\n")
        import_log(tmp_path / "log.json", mapping=tmp_path / "mapping.yaml")


def test_a_byte_order_mark_and_blank_lines_are_passed_over(mapped):
    scenarios, report = mapped('\ufeff{"a": "x"}\n\n  \n{"a": "y"}\n', "text: /a\n")
    assert [s.request.text for s in scenarios] == ["x", "y"]
    assert report.items == 2


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
        max_leaves=8,
    )
)  # fmt: skip
def test_whatever_an_item_is_it_is_counted_once(tmp_path_factory, item):
    folder = tmp_path_factory.mktemp("log")
    (folder / "log.json").write_text(json.dumps([item]))
    (folder / "m.yaml").write_text(MAPPING + "text: /a\nid: /name\ngold: {calls: {at: /b}, skills: /b/name}\n")
    scenarios, report = import_log(folder / "log.json", mapping=folder / "m.yaml")
    assert report.items == 1 == report.taken + report.refused
    for scenario in scenarios:
        assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("how much", "en"),
        ("多少钱", "zh"),
        ("これはいくら", "ja"),
        ("얼마예요", "ko"),
        ("сколько", "ru"),
        ("链接3 ok", "zh"),
    ],
)
def test_the_language_is_told_by_the_script(text, language):
    assert language_of(text) == language
