"""Import of other people's skills, hooks and MCP captures: lenient in what is read, strict in what is written."""

from harnessctl.importing.hooks import import_hooks
from harnessctl.importing.mcp import import_mcp
from harnessctl.importing.report import Entry, ImportReport, Note
from harnessctl.importing.skills import import_skills

__all__ = ["Entry", "ImportReport", "Note", "import_hooks", "import_mcp", "import_skills"]
