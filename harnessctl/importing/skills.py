"""Import of skills: SKILL.md files of any client of the Agent Skills specification into `skills/<name>/`.

What always holds: what is written compiles; a body is the source's byte for byte but for the changes that the report
lists. Which skills of a batch can stand together is settled for the batch as a whole: a text that mentions another
skill where no code span can be put (in code, a path, an address) cannot be in one project with it.
"""

from __future__ import annotations

import re
from pathlib import Path

from harnessctl.errors import Faults
from harnessctl.importing.front_matter import read_front_matter
from harnessctl.importing.names import LOAD_SKILL, KnownNames, known_names
from harnessctl.importing.neighbours import note_bare_mentions
from harnessctl.importing.placing import place, project_folder
from harnessctl.importing.report import Entry, ImportReport
from harnessctl.importing.settling import Draft, settle
from harnessctl.importing.side_files import side_files
from harnessctl.importing.skill_fields import other_fields, skill_description, skill_name
from harnessctl.importing.sources import read_text, shown, walk
from harnessctl.importing.yaml_text import to_yaml
from harnessctl.manifests.markdown import read_skill
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.skill import SkillFrontMatter

_SKILL_FILE = re.compile(r"^(?:(.*?)_*)?SKILL\.md$", re.IGNORECASE)


def import_skills(source: Path, project: Path, *, dry_run: bool = False, force: bool = False) -> ImportReport:
    """Import every skill in `source`, a file or a folder, into the project at `project`.

    UsageError when either is not there; StorageError when the disk refuses (what was placed before stays whole).
    `force` replaces skills that exist with other content. See docs/importing.md.
    """
    root = project_folder(project)
    known = known_names(root)
    known.tools.setdefault(LOAD_SKILL, "the compiler, which adds it where there are skills")
    report = ImportReport(kind="skills", source=str(source), dry_run=dry_run)
    drafts = _drafts(source, known, report)
    for draft in settle(drafts, known):
        _write(draft, root, force=force, dry_run=dry_run)
    note_bare_mentions(root, {entry.name: [entry.name] for entry in report.imported}, report)
    return report


def _drafts(source: Path, known: KnownNames, report: ImportReport) -> list[Draft]:
    files = list(walk(source))
    skills = [path for path in files if path == source or _SKILL_FILE.match(path.name)]
    folders = {path.parent: path for path in skills if path != source and path.name.lower() == "skill.md"}
    beside: dict[Path, list[Path]] = {folder: [] for folder in folders}
    out: list[Draft] = []
    for path in files:
        if path in skills:
            continue
        owner = next((parent for parent in path.parents if parent in folders), None)
        if owner is not None:
            beside[owner].append(path)
        else:
            reason = "not a SKILL.md, and beside none"
            report.entries.append(Entry(source=shown(path, source), outcome="passed over", reason=reason))
    for path in skills:
        entry = Entry(source=shown(path, source), outcome="refused")
        report.entries.append(entry)
        draft = _draft(path, source, known, entry)
        if draft is not None:
            if folders.get(path.parent) == path:
                draft.side = side_files(path.parent, beside[path.parent], entry)
            out.append(draft)
    report.entries.sort(key=lambda entry: entry.source)
    return out


def _draft(path: Path, source: Path, known: KnownNames, entry: Entry) -> Draft | None:
    text = read_text(path, entry)
    front = read_front_matter(text, entry) if text is not None else None
    if front is None:
        return None
    entry.outcome = "imported"
    if front.fields is None:
        entry.note("warning", 1, "it has no front matter; name and description are taken from its place and its body")
    if not front.body.strip():
        entry.refuse("it has no body: loading it would tell the model nothing")
        return None
    name, alias = skill_name(front, _place_name(path, source), entry)
    description = skill_description(front, entry)
    if description is None:
        entry.refuse("it has no description, and no paragraph or heading to take one from")
        return None
    entry.name = name
    if path == source and (beside := sum(other != path for other in path.resolve().parent.iterdir())):
        entry.note(
            "not carried over", 0, f"{beside} files and folders beside it: give the skill's folder to take them in"
        )
    return Draft(entry, name, alias, description, other_fields(front, known.tools, entry), front)


def _place_name(path: Path, source: Path) -> str:
    """What the place of a file calls the skill: its folder, or the last part of a flattened file name."""
    match = _SKILL_FILE.match(path.name)
    if match is None:
        return path.stem
    if match[1]:
        return match[1].split("__")[-1]
    return path.resolve().parent.name if path.parent in (source, source.parent) else path.parent.name


def _write(draft: Draft, root: Path, *, force: bool, dry_run: bool) -> None:
    front = {"name": draft.name, "description": draft.description, **draft.fields}
    try:
        text = f"---\n{to_yaml(front)}---\n{draft.front.body}"
    except ValueError as error:
        draft.entry.refuse(f"the front matter cannot be written as YAML: {error}")
        return
    folder = f"skills/{draft.name}"
    faults = Faults()
    file = read_skill(f"{folder}/SKILL.md", text.encode(), faults)
    if file is not None and file.front is not None:
        convert(file.front, "Skill", SkillFrontMatter, faults)
    if faults.errors:
        draft.entry.refuse(f"what would be written does not compile: {faults.errors[0].render().partition(chr(10))[0]}")
        return
    files = {f"{folder}/{name}": data for name, data in draft.side.items()}
    place(
        root, {**files, f"{folder}/SKILL.md": text.encode()}, draft.entry, force=force, dry_run=dry_run, folder=folder
    )
