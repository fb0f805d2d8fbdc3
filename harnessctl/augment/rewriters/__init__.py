"""Rewriters: where new wordings of a harness's texts come from."""

from harnessctl.augment.rewriters.opening import REWRITERS, open_rewriter

__all__ = ["REWRITERS", "open_rewriter"]
