"""The passes of a compile: sources in, bundles out, every fault on the way.

A pass reads what earlier ones left in `Build` and adds to it; a fault never stops a pass, only `emit`, which makes
nothing when there was an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from harnessctl.compile import harnesses, links, load_skill
from harnessctl.compile.consequences import without_consequences
from harnessctl.compile.discover import Discovered, outline_of, with_references
from harnessctl.compile.emit import bundle_of
from harnessctl.compile.harnesses import Plan
from harnessctl.compile.limits import effective_limits
from harnessctl.compile.scope import Scope
from harnessctl.compile.shelf import Shelf
from harnessctl.compile.target import EncodedBundle, Offer, Target
from harnessctl.compile.unit import Unit, faults_of
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.locate import Project
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.storage import digest_bytes

KINDS = ("Skill", "Examples", "Tools", "Hooks", "PromptPipeline", "World")


@dataclass(slots=True)
class Build:
    """Everything that a compile knows."""

    project: Project
    faults: Faults
    shelf: Shelf
    discovered: Discovered
    units: list[Unit] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    offered: dict[str, list[Offer]] = field(default_factory=dict)

    def of(self, kind: str, names: Iterable[str] | None = None) -> list[Unit]:
        """The units of a kind; those of the given names, in their order."""
        found = {unit.file.name: unit for unit in self.units if unit.file.kind == kind}
        return list(found.values()) if names is None else [found[name] for name in names if name in found]


def run(build: Build) -> None:
    """All passes in order."""
    passes: tuple[Callable[[Build], None], ...] = (
        load,
        discover,
        references,
        schemas,
        skill_bodies,
        prompt_blocks,
        hooks,
        link,
        emit,
    )
    for step in passes:
        step(build)
    build.faults.items = _distinct(build.faults.items)


def _distinct(faults: list[Fault]) -> list[Fault]:
    """One fault a place, code and message: a source that two harnesses include has its faults once."""
    return list({(f.path, f.line, f.col, f.code, f.message): f for f in reversed(faults)}.values())[::-1]


def load(build: Build) -> None:
    """Read every source, or take what is kept of the same bytes: its names, and what is wrong with it alone."""
    for file in build.project.sources:
        try:
            data = (build.project.root / file.path).read_bytes()
        except OSError as error:
            build.faults.add(Fault(file.path, 0, 0, "source-unreadable", f"the file cannot be read: {error.strerror}"))
            continue
        unit = Unit(file, data, digest_bytes(data))
        if not build.shelf.restore(unit):
            unit.read()
        build.faults.extend(faults_of(unit.faults))
        build.units.append(unit)
        if file.kind == "Harness" and (document := unit.read()) is not None:
            plan = harnesses.plan(file, document)
            if plan is not None:
                build.plans.append(plan)
    # The default harness comes first wherever harnesses are listed.
    build.plans.sort(key=lambda plan: (plan.file.name != "harness", plan.file.name))
    links.unique_harnesses(build.plans, build.faults)


def discover(build: Build) -> None:
    """The tools of MCP servers that list them, from harness.lock or from the servers."""
    for unit in build.of("Tools"):
        build.offered[unit.file.name] = build.discovered.tools(unit, build.faults)


def references(build: Build) -> None:
    """What each harness includes, and so which names it knows."""
    used: set[str] = set()
    for plan in build.plans:
        harnesses.include(plan, build.project.sources, build.faults)
        units = {
            "Skill": build.of("Skill", plan.skills),
            "Examples": build.of("Examples", plan.skills),
            "Tools": build.of("Tools", plan.tools),
            "Hooks": build.of("Hooks", plan.hooks),
            "PromptPipeline": build.of("PromptPipeline", [plan.spec.prompt]),
            "World": build.of("World", [plan.spec.world] if plan.spec.world is not None else []),
        }
        links.named_files(plan, build.units, build.faults)
        used.update(unit.file.path for group in units.values() for unit in group)
        limits = effective_limits(plan, build.faults)
        # Names of limits that do not fit their schema are known all the same.
        written = plan.document.get("limits")
        values: dict[str, int | float] = dict.fromkeys(written if isinstance(written, dict) else (), 1)
        values |= {name: limit.value for name, limit in limits.items()}
        build.targets.append(Target(plan, units, limits, _scope(build, plan, units, values)))
    rest = {kind: [unit for unit in build.of(kind) if unit.file.path not in used] for kind in KINDS}
    if any(rest.values()):
        everything = {kind: build.of(kind) for kind in KINDS}
        values = dict(DEFAULT_LIMITS)
        values |= {name: 1 for unit in build.of("Harness") for name in unit.outline.get("limits", [])}
        build.targets.append(Target(None, rest, {}, _scope(build, None, everything, values)))
    for target in build.targets:
        offers = [offer for unit in target.units["Tools"] for offer in build.offered[unit.file.name]]
        target.discovered = [(with_references(tool, target.scope), place) for tool, place in offers]


def _scope(build: Build, plan: Plan | None, units: dict[str, list[Unit]], limits: dict[str, int | float]) -> Scope:
    known_tools: dict[str, dict[str, Any]] = {}
    servers: dict[str, dict[str, Any]] = {}
    for unit in units["Tools"]:
        outlines = [*unit.outline.get("tools", []), *(outline_of(t, p) for t, p in build.offered[unit.file.name])]
        for tool in outlines:
            known_tools.setdefault(tool["name"], tool)
        servers.update(unit.outline.get("servers", {}))
    known_skills = {unit.file.name: unit.outline for unit in units["Skill"] if unit.outline}
    if known_skills and not any(tool["builtin"] == load_skill.LOAD_SKILL for tool in known_tools.values()):
        known_tools.setdefault(load_skill.LOAD_SKILL, load_skill.outline())
    elsewhere: dict[str, str] = {}
    for unit in build.units:
        names = [tool["name"] for tool in unit.outline.get("tools", [])] if unit.file.kind == "Tools" else []
        names += [unit.file.name] if unit.file.kind == "Skill" else []
        what = "tool" if unit.file.kind == "Tools" else "skill"
        elsewhere |= {n: f"{what} of {unit.file.path}" for n in names if n not in known_tools and n not in known_skills}
    names = [name for unit in build.of("Harness") for name in (unit.file.name, unit.outline.get("name"))]
    return Scope(
        build.project.root,
        plan.spec.name if plan is not None else "",
        tools=known_tools,
        skills=known_skills,
        servers=servers,
        limits=limits,
        harnesses=[name for name in names if name],
        elsewhere=elsewhere,
        require_skill=plan is not None and plan.spec.require_skill == "reply",
    )


def _bind(build: Build, *kinds: str) -> None:
    """Bind the sources of some kinds for every harness."""
    for target in build.targets:
        for kind in kinds:
            bound = [unit.bind(target.scope, build.shelf.is_current) for unit in target.units[kind]]
            target.bound[kind] = bound
            for item in bound:
                build.faults.extend(faults_of(item.faults))


def schemas(build: Build) -> None:
    """Tools: their JSON Schemas, how they are run, the servers that they need."""
    _bind(build, "Tools")


def skill_bodies(build: Build) -> None:
    """Skills and their examples: rules, references, limits."""
    _bind(build, "Skill", "Examples")


def prompt_blocks(build: Build) -> None:
    """Pipelines and the worlds that supply their inputs."""
    _bind(build, "PromptPipeline", "World")


def hooks(build: Build) -> None:
    """Hooks: events, conditions, checks, actions, code."""
    _bind(build, "Hooks")


def link(build: Build) -> None:
    """What can only be seen when all parts of a harness are there."""
    for target in build.targets:
        if target.plan is None:
            links.enforced(target, build.faults)
            continue
        target.reply, used = harnesses.reply(target.plan, target.scope, build.faults)
        links.check(target, used, build.faults)
    links.judges([target for target in build.targets if target.plan is not None], build.faults)
    links.limit_numbers(build.targets, build.faults)
    build.faults.items = without_consequences(build.faults.items, build.units)


def emit(build: Build) -> None:
    """A bundle for each harness, unless something is wrong anywhere."""
    if build.faults.errors:
        return
    digests = {unit.file.path: unit.digest for unit in build.units}
    by_name = {
        name: target
        for target in build.targets
        if target.plan is not None
        for name in (target.plan.spec.name, target.plan.file.name)
    }

    def made(target: Target) -> EncodedBundle:
        """The bundle of a target. Its judges' come first: their digests are in it, and there is no circle of judges."""
        if target.bundle is None:
            for name in target.judged_by:
                target.judges[name] = made(by_name[name]).digest
                target.judges |= by_name[name].judges
            target.bundle = bundle_of(target, digests, build.discovered.locked)
        return target.bundle

    for target in by_name.values():
        made(target)


def all_sources(build: Build) -> dict[str, str]:
    """path to SHA-256 of every source of the project and of every project file that is embedded."""
    found = {unit.file.path: unit.digest for unit in build.units}
    for target in build.targets:
        for bound in target.all_bound:
            found |= bound.embedded
    return dict(sorted(found.items()))
