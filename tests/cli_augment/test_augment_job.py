"""The job behind `augment`, with a maker of its own: order, workers, refusals, crashes, bounded counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harnessctl.augment.counting import Counting
from harnessctl.augment.coverage import MAX_FORMS
from harnessctl.augment.job import RECORDS, REFUSALS, VARIANTS, Job, read_variations
from harnessctl.augment.workers import CHUNK, results
from harnessctl.bundle.files import Bundle, make_bundle
from harnessctl.bundle.state import Block, HarnessState, Limit, Part, Prompt, Rule, Skill, Tool
from harnessctl.bundle.variation import Changes, Variation, variant_bundle, vary
from harnessctl.errors import HarnessctlError, LawBroken, RecordError

STATE = HarnessState(
    skills=[
        Skill(name="ask", description=["Answers."], kind="reply",
              body=[Part(text=["Do it."], rules=["a", "b"])],
              rules=[Rule(id="a", text=["Say a."]), Rule(id="b", text=["Say b."])]),
        Skill(name="chat", description=["Chats."], kind="reply", body=[], rules=[]),
    ],
    tools=[Tool(name="look", description=["Looks."], group="retrieval", parameters={})],
    hooks=[],
    prompt=Prompt(blocks=[Block(id="base", role="system", items=[Rule(id="x", text=["Be kind."])])]),
    limits={"reply_max_chars": Limit(value=80, range=[50, 120])},
)  # fmt: skip
PARENT = make_bundle(STATE, name="tiny", version="1.0.0")


@dataclass
class Made:
    bundle: Bundle
    variation: Variation


class Maker:
    """Renames a tool by the number; every seventh variant breaks a law."""

    def variant(self, *, seed: int, number: int) -> Made:
        if number % 7 == 6:
            raise LawBroken("b", f"skills/ask/{number}", "a reference is lost")
        changes = Changes(
            tools={"look": f"find_{seed}_{number}"},
            masked_skills=["chat"] if number % 2 else [],
            masked_rules={"ask": ["b"]} if number % 3 == 0 else {},
            texts={"skills/ask/rules/a": [f"Do say a, {number % 5}."]},
            limits={"reply_max_chars": 50 + number % 70},
        )
        bundle = variant_bundle(PARENT, vary(STATE, changes))
        operators = {"tool-rename": ["look"], "rule-paraphrase": ["ask#a"]}
        if changes.masked_skills:
            operators["skill-mask"] = ["chat"]
        return Made(
            bundle,
            Variation(
                parent=PARENT.digest,
                variant=bundle.digest,
                harness="tiny",
                envelope="e-1.0.0",
                envelope_digest="d",
                seed=seed,
                number=number,
                operators=operators,
                fallbacks=1,
                changes=changes,
            ),
        )


def open_maker() -> Maker:
    return Maker()


def carried_out(folder: Path, n: int, **options: Any) -> Counting:
    counting = Counting(STATE, ["tools/look/description"])
    Job(open_maker=open_maker, folder=folder, seed=3, n=n, **options).run(counting, lambda _: None)
    return counting


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_records_come_in_order_and_refusals_apart(tmp_path):
    counting = carried_out(tmp_path, 20)
    numbers = [variation.number for variation in read_variations(tmp_path / RECORDS)]
    assert numbers == [n for n in range(20) if n % 7 != 6]
    refused = [json.loads(line) for line in (tmp_path / REFUSALS).read_text().splitlines()]
    assert [r["number"] for r in refused] == [6, 13]
    assert refused[0] == {"number": 6, "law": "b", "place": "skills/ask/6", "reason": "a reference is lost"}
    assert (counting.variants, counting.refused) == (18, 2)


def test_what_is_counted(tmp_path):
    coverage = carried_out(tmp_path, 21).coverage()
    assert (coverage.variants, coverage.refused, coverage.fallbacks) == (18, 3, 18)
    used = coverage.operators["skill-mask"]
    assert (used.variants, used.targets, used.distinct) == (9, 9, 1)
    assert coverage.skills["chat"].masked == 9
    assert (coverage.skills["chat"].names, coverage.skills["chat"].descriptions) == (1, 1)
    assert coverage.tools["look"].names == 18
    assert coverage.tools["look"].parameters == 1
    assert coverage.rules["ask#a"].wordings == 5
    assert (coverage.rules["ask#b"].wordings, coverage.rules["ask#b"].masked) == (1, 6)
    assert (coverage.rules["base#x"].wordings, coverage.rules["base#x"].masked) == (1, 0)
    assert (coverage.limits["reply_max_chars"].least, coverage.limits["reply_max_chars"].most) == (50, 69)
    assert coverage.without_wording == ["tools/look/description"]
    assert [r.number for r in coverage.refusals] == [6, 13, 20]


def test_any_number_of_workers_gives_the_same_files(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    first = carried_out(one, 3 * CHUNK + 5, bundles=True)
    second = carried_out(two, 3 * CHUNK + 5, bundles=True, workers=2)
    assert files(one) == files(two)
    assert first.coverage() == second.coverage()
    assert len(list((one / VARIANTS).iterdir())) == first.variants  # named by digest; here no two are the same
    assert (one / VARIANTS / Maker().variant(seed=3, number=0).bundle.file_name).is_file()


@pytest.mark.parametrize("cut", [0, 1, 37, -1, -40])
def test_a_job_that_was_broken_off_goes_on_and_ends_the_same(tmp_path, cut):
    whole, part = tmp_path / "whole", tmp_path / "part"
    expected = carried_out(whole, 30)
    carried_out(part, 17)
    records = (part / RECORDS).read_bytes()
    (part / RECORDS).write_bytes(records[: cut if cut >= 0 else len(records) + cut])
    if cut >= 0:
        (part / REFUSALS).unlink()
    again = carried_out(part, 30)
    assert files(whole) == files(part)
    assert again.coverage() == expected.coverage()


def test_a_job_that_is_done_does_nothing(tmp_path):
    carried_out(tmp_path, 10)
    before = files(tmp_path)
    told: list[str] = []
    counting = Counting(STATE)
    Job(open_maker=open_maker, folder=tmp_path, seed=3, n=10).run(counting, told.append)
    assert (files(tmp_path), told, counting.variants) == (before, [], 9)


def test_a_record_that_is_none_is_named_by_its_line(tmp_path):
    carried_out(tmp_path, 3)
    with (tmp_path / RECORDS).open("a") as file:
        file.write('{"format": "harnessctl/variation.v9"}\n')
    with pytest.raises(RecordError, match=r"records\.jsonl:4: not an augmentation record"):
        carried_out(tmp_path, 5)


def test_forms_are_told_apart_up_to_a_bound_and_memory_stays_flat():
    counting = Counting(STATE)
    maker = Maker()
    for number in range(0, 700):
        if number % 7 != 6:
            counting.add(maker.variant(seed=0, number=number).variation)
    tracemalloc.start()
    variation = maker.variant(seed=0, number=0).variation
    for number in range(4 * MAX_FORMS):
        variation.changes.tools["look"] = f"name_{number}"
        counting.add(variation)
        if number == 2 * MAX_FORMS:
            before = tracemalloc.get_traced_memory()[0]
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert counting.coverage().tools["look"].names == MAX_FORMS
    assert after - before < 50_000


def test_a_lost_record_is_an_error(tmp_path):
    carried_out(tmp_path, 10)
    lines = (tmp_path / RECORDS).read_bytes().splitlines(keepends=True)
    (tmp_path / RECORDS).write_bytes(b"".join(lines[:2]))
    with pytest.raises(RecordError, match="variant 2 is not recorded, and 6 is"):
        carried_out(tmp_path, 12)


def _dies(number: int) -> int:
    if number == 20:
        os._exit(9)
    return number


def open_dying() -> Any:
    return _dies


def test_a_worker_that_dies_is_an_error_and_not_a_hang():
    with pytest.raises(HarnessctlError, match="a worker process died"):
        list(results(open_dying, 0, 200, workers=2))


KILLED = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from tests.cli_augment.test_augment_job import STATE, open_maker
from harnessctl.augment.counting import Counting
from harnessctl.augment.job import Job
if __name__ == "__main__":
    Job(open_maker=open_maker, folder=Path({folder!r}), seed=3, n=100_000, workers={workers}).run(
        Counting(STATE), lambda what: print(what, flush=True)
    )
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_was_killed_goes_on_and_leaves_no_worker_behind(tmp_path, workers):
    script = tmp_path / "script.py"
    folder = tmp_path / "run"
    script.write_text(KILLED.format(here=str(Path(__file__).parents[2]), folder=str(folder), workers=workers))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    for _ in range(40):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()  # ends once nobody has the other end of the pipe any more: no worker is left
    last = max(variation.number for variation in read_variations(folder / RECORDS))
    assert last >= 38
    n = last + 20
    carried_out(folder, n)
    carried_out(tmp_path / "whole", n)
    assert files(folder) == files(tmp_path / "whole")
