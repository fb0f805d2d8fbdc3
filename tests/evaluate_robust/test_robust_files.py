"""Sets as files: written with a card, read back the same, and refused where something is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from robust_jobs import N, built, host, job_of, opened

from harnessctl.bundle.set_item import SetItem
from harnessctl.bundle.variation import rebuild, variant_bundle
from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.building.frozen import frozen_set
from harnessctl.evaluate.building.set_files import (
    card_path,
    encode_items,
    read_card,
    read_set,
    set_digest,
    told,
    write_set,
)
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.workers import outcomes

Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Writes a built set to a file."""

    def write(suite: str = "tool-robust", harness: str = "mini") -> Path:
        path = tmp_path / f"{suite}.jsonl"
        items = built(suite, harness)
        write_set(path, suite, items, opened(job_of(suite, harness, N)))
        return path

    return write


def lines_of(job: Job, n: int) -> list[dict[str, bytes]]:
    return [outcome.lines for outcome in outcomes(job, range(n), opened(job))]


@pytest.mark.parametrize("suite", ["tool-robust", "prompt-robust"])
def test_a_file_gives_the_items_that_are_built_without_it(written: Write, suite: str) -> None:
    path = written(suite)
    items = read_set(path)
    assert items == built(suite, "mini").items
    from_file = lines_of(job_of(suite, "mini", 6, set=str(path)), 6)
    assert from_file == lines_of(job_of(suite, "mini", 6), 6)


def test_processes_answer_what_was_built(written: Write) -> None:
    path = str(written())
    one = lines_of(job_of("tool-robust", "mini", 4), 4)
    assert lines_of(job_of("tool-robust", "mini", 4, set=path, workers=2), 4) == one
    job = job_of("tool-robust", "mini", 4, workers=2)
    items = built("tool-robust", "mini")
    setting = opened(job)
    setting.built["tool-robust"] = items
    assert [outcome.lines for outcome in outcomes(job, range(4), setting)] == one


def test_the_card_says_what_the_set_is_made_of(written: Write) -> None:
    path = written()
    card = read_card(path)
    assert card is not None
    assert card.digest == set_digest(path)
    assert (card.set, card.harness, card.items, card.seed) == ("tool-robust", "mini", N, 0)
    assert card.drawn == card.items + sum(card.rejected.values()) + sum(card.passed_over.values())
    for counts in (card.intents, card.languages, card.levels, card.families):
        assert sum(counts.values()) == N
    assert card.rubrics["ACQ"] == N
    assert card.checks == {"addresses": N, "says": card.rubrics["RC"], "called": card.rubrics["TC"]}
    assert set(card.distractors) == {"twin", "sibling", "far"}


def test_an_item_is_rebuilt_from_its_record(written: Write) -> None:
    for item in read_set(written("prompt-robust"))[:4]:
        assert item.variation is not None
        assert rebuild(host("mini"), item.variation).digest == item.variation.variant


def test_a_set_of_a_file_is_known_by_its_path(written: Write) -> None:
    path = written()
    found = set_named(str(path))
    assert (found.name, found.title, found.size) == ("tool-robust", "Tool Robustness (T3)", N)
    assert list(found.columns) == ["ACQ", "RC", "TC", "average"]
    assert frozen_set(path) is found, "read once"
    path.write_bytes(encode_items(read_set(path)[:3]))
    assert set_named(str(path)).size == 3


def test_a_later_harness_takes_the_same_changes(written: Write) -> None:
    path = written()
    job = job_of("tool-robust", "mini", 2, set=str(path))
    limit = msgspec.structs.replace(job.bundle.state.limits["reply_max_chars"], value=90)
    state = msgspec.structs.replace(job.bundle.state, limits=job.bundle.state.limits | {"reply_max_chars": limit})
    later = Job(job.root, variant_bundle(job.bundle, state), job.config)
    with later.setting() as setting:
        assert "for which nobody checked them" in told(path, read_set(path), setting)[0]
        item = set_named(str(path)).items(setting).item(0)
        assert item.variation is not None
        assert rebuild(later.bundle, item.variation).digest == item.bundle.digest


def test_a_harness_that_a_set_does_not_fit_is_refused_before_there_is_a_run(written: Write) -> None:
    path = written()
    job = job_of("tool-robust", "mini", 2, set=str(path))
    tools = job.bundle.state.tools
    more = [*tools, msgspec.structs.replace(tools[0], name="get_twice")]
    state = msgspec.structs.replace(job.bundle.state, tools=more)
    with Job(job.root, variant_bundle(job.bundle, state), job.config).setting() as setting:
        with pytest.raises(UsageError, match="does not fit the harness mini") as caught:
            set_named(str(path)).items(setting)
        assert "build the set again" in caught.value.hint


def test_an_altered_set_is_told(written: Write) -> None:
    path = written()
    path.write_bytes(encode_items(read_set(path)[1:]))
    setting = opened(job_of("tool-robust", "mini", 1))
    said = "tool-robust.jsonl is not as its card says: it was altered after it was built"
    assert told(path, read_set(path), setting) == [said]
    card_path(path).unlink()
    assert told(path, read_set(path), setting) == []


def test_another_harness_is_refused(written: Write) -> None:
    path = written()
    setting = opened(job_of("tool-robust", "live-stream", 1, set=str(path)))
    with pytest.raises(UsageError, match="built for the harness mini, not for live-stream") as caught:
        set_named(str(path)).items(setting)
    assert "harness=mini" in caught.value.hint


def test_more_items_than_there_are_is_refused(written: Write) -> None:
    path = written()
    setting = opened(job_of("tool-robust", "mini", N + 1, set=str(path)))
    with pytest.raises(UsageError, match=f"has {N} items, not {N + 1}"):
        set_named(str(path)).items(setting)


def line(item: SetItem) -> bytes:
    return msgspec.json.encode(item) + b"\n"


def test_files_that_are_no_sets(tmp_path: Path) -> None:
    items = built("tool-robust", "mini").items
    first, other = items[0], items[1]
    stranger = built("prompt-robust", "mini").items[2]
    elsewhere = msgspec.structs.replace(other, scenario=msgspec.structs.replace(other.scenario, harness="shop"))
    bare = msgspec.structs.replace(other, scenario=msgspec.structs.replace(other.scenario, task=None))
    cases: list[tuple[bytes, type[Exception], str]] = [
        (b"", UsageError, "holds no items"),
        (b'{"format":"harnessctl/scenario.v1"}\n', RecordError, ":1: not an item of format harnessctl/set-item.v1"),
        (b"[1]\n", RecordError, ":1: not an item"),
        (line(first) + b"not json\n", RecordError, ":2"),
        (
            line(first) + b'{"format":"harnessctl/set-item.v1","set":"tool-robust"}\n',
            RecordError,
            ":2: not an item of a set",
        ),
        (line(first) + line(stranger), RecordError, ":2: is of the set 'prompt-robust'"),
        (line(first) + line(elsewhere), RecordError, ":2: is of the harness 'shop'"),
        (line(first) + line(bare), RecordError, ":2: the scenario has no task"),
        (line(first) + line(first), RecordError, ":2: the id .* is taken by line 1"),
        (line(first) + line(other)[:-40], RecordError, "ends in the middle of a line"),
    ]
    for number, (data, error, said) in enumerate(cases):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(data)
        with pytest.raises(error, match=said):
            read_set(path)
    with pytest.raises(UsageError, match="no set at"):
        read_set(tmp_path / "absent.jsonl")
    with pytest.raises(UsageError, match="no set at"):
        read_set(tmp_path)


def test_an_unknown_check_is_named_with_its_line(tmp_path: Path) -> None:
    data = line(built("tool-robust", "mini").items[0]).replace(b'"check":"addresses"', b'"check":"pleases"')
    path = tmp_path / "set.jsonl"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=r"set.jsonl:1: not an item of a set: Invalid value 'pleases'"):
        read_set(path)
