"""The shipped hosts compiled once, and a real endpoint of which each test says how it behaves."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile import compile_project

sys.path.insert(0, str(Path(__file__).parent))

from rewriters_endpoint import FakeEndpoint

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    root = tmp_path_factory.mktemp("hosts")
    for folder in ("manifests", "skills"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    bundles = [read_bundle(found.path) for found in compile_project(root).bundles]
    return {bundle.name: bundle for bundle in bundles}


@pytest.fixture(scope="session")
def retail(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Bundle:
    root = tmp_path_factory.mktemp("retail") / "project"
    shutil.copytree(REPOSITORY / "tests" / "retail" / "project", root, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(shared_data / "tau2_retail" / "db.json", root / "manifests" / "worlds" / "db.json")
    return read_bundle(compile_project(root).bundles[0].path)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    """A server in a thread of its own, with no keys or proxies of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    loop = asyncio.new_event_loop()
    fake = FakeEndpoint()
    loop.run_until_complete(fake.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield fake
    asyncio.run_coroutine_threadsafe(fake.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
