"""Parents that are compiled once: the shipped hosts, the retail project, and a small one with every kind of tie."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile import compile_project
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.manifests.specs.envelope import Operator as Settings

sys.path.insert(0, str(Path(__file__).parent))

from augment_kiosk import KIOSK

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    root = tmp_path_factory.mktemp("shipped")
    for folder in ("manifests", "skills"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    bundles = [read_bundle(found.path) for found in compile_project(root).bundles]
    return {bundle.name: bundle for bundle in bundles}


@pytest.fixture(scope="session")
def live(shipped: dict[str, Bundle]) -> Bundle:
    return shipped["live-stream"]


@pytest.fixture(scope="session")
def mini(shipped: dict[str, Bundle]) -> Bundle:
    return shipped["mini"]


@pytest.fixture(scope="session")
def retail(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Bundle:
    root = tmp_path_factory.mktemp("retail") / "project"
    shutil.copytree(REPOSITORY / "tests" / "retail" / "project", root, ignore=shutil.ignore_patterns("build"))
    shutil.copy(shared_data / "tau2_retail" / "db.json", root / "manifests" / "worlds" / "db.json")
    return read_bundle(compile_project(root).bundles[0].path)


@pytest.fixture(scope="session")
def kiosk(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    root = tmp_path_factory.mktemp("kiosk")
    for name, text in KIOSK.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_bundle(compile_project(root).bundles[0].path)


@pytest.fixture(scope="session")
def rewriter() -> RulesRewriter:
    return RulesRewriter()


@pytest.fixture
def augmenter(rewriter: RulesRewriter) -> Callable[..., Augmenter]:
    """An augmenter of a parent with the given operators: {name: settings}."""

    def make(parent: Bundle, settings: Mapping[str, Settings], **options: Any) -> Augmenter:
        envelope = Envelope(
            api_version="harnessctl/v1", kind="Envelope", name="test", version="1.0.0", operators=dict(settings)
        )
        return Augmenter(parent, envelope, rewriter=rewriter, **options)

    return make
