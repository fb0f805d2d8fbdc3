"""Logs into scenarios: what was served becomes what can be tested and trained on, once a person has said what is right."""

from harnessctl.simulate.imports.log import import_log
from harnessctl.simulate.imports.report import LogImport, Refusal

__all__ = ["LogImport", "Refusal", "import_log"]
