"""canonical-names: has learnt the names by heart, and uses them whatever the harness shows."""

from harnessctl.simulate.flaws import Flaw

FLAW = Flaw(
    name="canonical-names",
    lowers=frozenset({"accuracy", "effectiveness", "tool_rationality", "skill_selection"}),
    speaks_canonical=True,
    only_variants=True,
)
