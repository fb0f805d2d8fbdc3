"""Order: the stages, in the order in which a policy goes through them. Importing it loads no torch."""

from __future__ import annotations

from importlib import import_module

from harnessctl.errors import UsageError
from harnessctl.train.config import TrainConfig

STAGES = ("base", "sft", "opd", "rl", "mtp-adapt")
#: The package of each stage in harnessctl/train/.
PACKAGES = {"base": "base", "sft": "sft", "opd": "opd", "rl": "rl", "mtp-adapt": "mtp"}
#: The type of each stage's recipe, in the module `config` of its package.
CONFIGS = {"base": "BaseConfig", "sft": "SftConfig", "opd": "OpdConfig", "rl": "RlConfig", "mtp-adapt": "MtpConfig"}
#: The stages that train under a harness; others do where a recipe names one.
HARNESSED = frozenset({"sft", "rl", "mtp-adapt"})
#: The stages that carry a draft head across, which must be whole then; rl marks it stale.
CARRIERS = frozenset({"base", "sft", "opd"})


def stages_before(stage: str) -> tuple[str, ...]:
    """The stages that come before one."""
    return STAGES[: STAGES.index(stage)]


def config_of(stage: str) -> type[TrainConfig]:
    """The type of a stage's recipe. UsageError says which stages there are."""
    if stage not in STAGES:
        raise UsageError(
            f"no stage {stage!r}; there are {', '.join(STAGES)}", hint="for example `harnessctl train sft`"
        )
    config: type[TrainConfig] = getattr(import_module(f"harnessctl.train.{PACKAGES[stage]}.config"), CONFIGS[stage])
    return config
