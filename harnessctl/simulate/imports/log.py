"""Log: what a production log holds, as scenarios that await gold."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.errors import StorageError
from harnessctl.records.scenario import Gold, Scenario
from harnessctl.simulate.imports.fields import FieldError
from harnessctl.simulate.imports.folding import Folding
from harnessctl.simulate.imports.items import Unreadable, read_items
from harnessctl.simulate.imports.mapped import MappedReader
from harnessctl.simulate.imports.report import LogImport
from harnessctl.simulate.imports.trajectories import TrajectoryReader
from harnessctl.simulate.needs import Completion
from harnessctl.trajectory import ViewerNames

RECORDS = "trajectories.jsonl"


class LogReader(Protocol):
    """How an item of a log becomes a scenario."""

    def scenario(self, item: Any, place: str, number: int) -> Scenario | None:
        """The scenario; None for an item that is passed over. FieldError says why there is none."""
        ...


def import_log(
    path: Path,
    *,
    mapping: Path | None = None,
    harness: str | None = None,
    viewers: ViewerNames | None = None,
    bundle: Bundle | None = None,
) -> tuple[list[Scenario], LogImport]:
    """The scenarios of a log, in its order, and the report.

    `path` is a file of our trajectories, the folder of a run, or with `mapping` any JSON Lines or JSON document. Gold
    that a mapping supplies is completed on `bundle` (what hooks demand first, what it needs of a variant), and refused
    where it names a tool or a skill that is not there. FaultsError for a mapping that is none; RecordError and StorageError for a log that cannot be read.
    """
    path = path / RECORDS if path.is_dir() else path
    if not path.exists():
        raise StorageError(f"cannot read {path}: there is no such file")
    names = viewers or ViewerNames()
    reader: LogReader = TrajectoryReader(harness) if mapping is None else MappedReader(mapping, harness)
    pointer = reader.spec.items if isinstance(reader, MappedReader) else ""
    report = LogImport(source=str(path))
    folding = Folding()
    complete = Completion(bundle.state) if bundle is not None else None
    for number, (place, item) in enumerate(read_items(path, pointer), 1):
        report.items += 1
        try:
            if isinstance(item, Unreadable):
                raise FieldError(item)
            scenario = reader.scenario(item, place, number)
            if scenario is None:
                report.passed_over += 1
                continue
            if bundle is not None and complete is not None and scenario.gold is not None:
                _check_names(scenario.gold, bundle)
                complete(scenario, scenario.gold)
        except FieldError as error:
            report.refuse(place, str(error))
            continue
        named = msgspec.structs.replace(scenario, request=names.apply(scenario.request))
        report.named += _still_names(scenario, named)
        folding.add(named)
    scenarios = folding.scenarios()
    report.folded = folding.folded
    report.taken = len(scenarios)
    report.with_gold = sum(scenario.gold is not None for scenario in scenarios)
    return scenarios, report


def _check_names(gold: Gold, bundle: Bundle) -> None:
    """FieldError when gold names what the harness does not have."""
    tools = {tool.name for tool in bundle.state.tools}
    skills = {skill.name for skill in bundle.state.skills}
    for what, wanted, there in (
        ("tool", [call.tool for call in gold.calls], tools),
        ("skill", [*gold.skills, *gold.strategies], skills),
    ):
        if gone := sorted(set(wanted) - there):
            raise FieldError(f"gold names the {what} {', '.join(gone)}, which {bundle.name} does not have")


def _still_names(before: Scenario, after: Scenario) -> bool:
    """Whether a viewer whose name was changed is still named in what is left. One letter is no name."""
    old = {message.viewer for message in before.request.viewer_messages()}
    gone = {name for name in old - {m.viewer for m in after.request.viewer_messages()} if len(name) > 1}
    if not gone:
        return False
    text = msgspec.json.encode(after).decode()
    return any(name in text for name in gone)
