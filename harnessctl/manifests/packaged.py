"""Packaged YAML: word lists and tables that lie beside the module which reads them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from harnessctl.errors import Faults
from harnessctl.manifests.load import load_yaml


@functools.cache
def packaged_yaml(module: str, name: str) -> Any:
    """What the file `name` beside the file `module` (a module's `__file__`) holds, read once; not to be altered. FaultsError
    when it is no YAML."""
    faults = Faults()
    document = load_yaml(name, Path(module).with_name(name).read_bytes(), faults)
    faults.raise_if_errors()
    assert document is not None
    return document.value
