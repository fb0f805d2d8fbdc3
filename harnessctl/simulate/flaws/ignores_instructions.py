"""ignores-instructions: answers right, in whatever form: instructions on the reply are not followed."""

from __future__ import annotations

from harnessctl.simulate.flaws import Flaw

FLAW = Flaw(name="ignores-instructions", lowers=frozenset({"FI"}), ignores=frozenset({"FI"}), only_tasks=True)
