"""What `harnessctl compile` costs: 300 skills of 2 KB, each time a cold process with bytecode.

    help        `harnessctl --help`
    unchanged   compile when nothing changed
    one         compile after one skill was changed
    nothing     compile without build/ and without a lock
    reference   a program that reads the same files with the C YAML loader, compiles each body as a Jinja template with
                the names and numbers that ours resolves as expressions, and writes one JSON file ('C YAML + jinja2')

    python benchmarks/compile.py [--skills 300] [--rounds 7] [--json]

The five are run in turn, round after round, so that a busy machine slows all of them; the ratios are of medians. The
targets are for wall time; on a machine that others use too the ratios of CPU time say more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

REFERENCE = """
import json, pathlib, re, sys
import jinja2, yaml
environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
out = []
for path in sorted(pathlib.Path(sys.argv[1], "skills").glob("*/SKILL.md")):
    _, front, body = path.read_text(encoding="utf-8").split("---\\n", 2)
    body = re.sub(r" \\{#[^}]*\\}", "", body)
    body = re.sub(r"`(\\w+)`", r"{{ tool('\\1') }}", body).replace("80", "{{ limits.reply_max_chars }}")
    environment.from_string(body)
    out.append({"front": yaml.load(front, yaml.CSafeLoader), "body": body})
pathlib.Path(sys.argv[1], "reference.json").write_text(json.dumps(out), encoding="utf-8")
"""
SENTENCE = "Say what the item is, what it costs and whether it is there, in the words of the viewer, and nothing else. "
HARNESS = """apiVersion: harnessctl/v1
kind: Harness
name: bench
version: 1.0.0
include: {skills: ["*"], tools: [catalog], hooks: [guards]}
prompt: main
limits: {max_rounds: {value: 4, range: [2, 6]}, reply_max_chars: {value: 80, range: [50, 120]}}
"""
TOOLS = """apiVersion: harnessctl/v1
kind: Tools
tools:
"""
TOOL = """  - name: get_part_{n}
    description: Gets part {n} of what is known of an item.
    parameters: {{type: object, properties: {{link_id: {{type: integer}}}}, required: [link_id]}}
    run: {{python: "shop:get_part"}}
"""
HOOKS = """apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: short
    event: stop
    check: {max_chars: {limit: reply_max_chars}}
    otherwise: {action: retry, max_retries: 2, message: {text: "Shorter, please."}}
"""
PROMPT = """apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
blocks:
  - id: base
    template: |
      You answer viewers with {{ tool('get_part_0') }}, in at most {{ limits.reply_max_chars }} characters.
      {% for skill in skills %}- {{ skill.name }}: {{ skill.description }}
      {% endfor %}
"""


def skill(n: int) -> str:
    head = (
        f"---\nname: skill-{n}\ndescription: Answers questions of kind {n} on an item on offer.\n"
        'metadata: {version: "1.0.0", kind: reply}\n---\n'
    )
    rules = [f"- Call `get_part_{n % 12}` before anything of kind {n} is said. {{#lookup .protected}}"]
    rules.append("- Reply in at most 80 characters. {#short limit=reply_max_chars}")
    rules += [f"- Rule {k}: " + SENTENCE for k in range(20)]
    return (head + SENTENCE * 2 + "\n## Rules\n" + "\n".join(rules))[:2000].rsplit("\n", 1)[0] + "\n"


def make_project(root: Path, skills: int) -> None:
    files = {
        "manifests/harness.yaml": HARNESS,
        "manifests/tools/catalog.yaml": TOOLS + "".join(TOOL.format(n=n) for n in range(12)),
        "manifests/tools/shop.py": "def get_part(link_id):\n    return {}\n",
        "manifests/hooks/guards.yaml": HOOKS,
        "manifests/prompts/main.yaml": PROMPT,
    } | {f"skills/skill-{n}/SKILL.md": skill(n) for n in range(skills)}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


class Timer:
    """Times whole processes, which find and write bytecode in a folder of their own."""

    def __init__(self, bytecode: Path) -> None:
        self._env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._env["PYTHONPYCACHEPREFIX"] = str(bytecode)

    def __call__(self, command: list[str]) -> Times:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=self._env)
        wall = time.perf_counter() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{' '.join(command[:4])}...: exit {done.returncode}\n{done.stdout}{done.stderr}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Times(wall * 1000, cpu * 1000)


class Times(NamedTuple):
    """Milliseconds of one process."""

    wall: float
    cpu: float


def measure(root: Path, timed: Timer, rounds: int) -> dict[str, list[Times]]:
    cli = [sys.executable, "-c", "from harnessctl.cli.main import main; main()"]
    compile_ = [*cli, "compile", "--project", str(root)]
    changed = root / "skills/skill-0/SKILL.md"
    original = changed.read_text(encoding="utf-8")
    aged = time.time() - 3600

    def age() -> None:
        # Files of this very moment are compared by content, as a working tree's are not.
        for path in root.rglob("*"):
            os.utime(path, (aged, aged))

    def from_nothing() -> Times:
        shutil.rmtree(root / "build", ignore_errors=True)
        (root / "harness.lock").unlink(missing_ok=True)
        return timed(compile_)

    def one_changed(number: int) -> Times:
        changed.write_text(original + f"- Rule of round {number}.\n", encoding="utf-8")
        return timed(compile_)

    times: dict[str, list[Times]] = {name: [] for name in ("help", "unchanged", "one", "nothing", "reference")}
    cases: list[tuple[str, Callable[[int], Times]]] = [
        ("nothing", lambda _: from_nothing()),
        ("help", lambda _: timed([*cli, "--help"])),
        ("unchanged", lambda _: timed(compile_)),
        ("reference", lambda _: timed([sys.executable, "-c", REFERENCE, str(root)])),
        ("one", one_changed),
    ]
    for number in range(rounds + 1):
        for name, case in cases:
            took = case(number)
            if name == "nothing":
                age()
                time.sleep(2.1)  # an index younger than that trusts no times
                timed(compile_)
            if number:  # the first round fills the file cache and writes bytecode
                times[name].append(took)
        changed.write_text(original, encoding="utf-8")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        make_project(root, options.skills)
        times = measure(root, Timer(Path(folder, "bytecode")), options.rounds)
        assert list((root / "build").glob("*.bundle.json")), "no bundle was written"
    medians = {name: Times(*map(statistics.median, zip(*all_, strict=True))) for name, all_ in times.items()}
    targets = {"unchanged / help": 1.5, "one / unchanged": 2.0, "nothing / reference": 1.5}
    ratios: dict[str, Times] = {}
    for name in targets:
        upper, lower = (medians[part] for part in name.split(" / "))
        ratios[name] = Times(upper.wall / lower.wall, upper.cpu / lower.cpu)
    if options.json:
        print(json.dumps({"ms": {n: t._asdict() for n, t in medians.items()},
                          "ratios": {n: t._asdict() for n, t in ratios.items()}}))  # fmt: skip
        return
    print("median ms                wall     cpu")
    for name, median in medians.items():
        print(f"{name:20} {median.wall:8.0f}{median.cpu:8.0f}")
    for name, ratio in ratios.items():
        met = "met" if ratio.wall <= targets[name] else "MISSED"
        print(f"{name:20} {ratio.wall:8.2f}{ratio.cpu:8.2f}   at most {targets[name]}: {met}")


if __name__ == "__main__":
    main()
