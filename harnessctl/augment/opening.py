"""Opening: an augmenter made from a bundle file and settings, in this process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harnessctl.augment.discovery import find_operators
from harnessctl.augment.operator import Rewriter
from harnessctl.augment.rewriters import open_rewriter
from harnessctl.augment.rewriters.llm import LlmRewriter
from harnessctl.augment.texts import texts_of
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle.files import read_bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.manifests.specs.envelope import Envelope


@dataclass(frozen=True)
class RewriterSettings:
    """Where new wordings come from: `rules`, or `llm` with its endpoint; `cache` keeps what an endpoint said."""

    name: str
    cache: Path | None = None
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None

    def open(self, on_progress: Callable[[int, int], None] | None = None) -> Rewriter:
        """The rewriter. UsageError when a setting that it needs is missing."""
        return open_rewriter(
            self.name,
            cache=self.cache,
            model=self.model,
            base_url=self.base_url,
            key_env=self.key_env,
            on_progress=on_progress,
        )

    def prepared(
        self, state: HarnessState, on_progress: Callable[[int, int], None] | None = None
    ) -> tuple[Rewriter, list[str]]:
        """The rewriter, its cache filled for the texts of `state`, and what there is to say of that.

        ModelError when an endpoint is not to be had. Workers open it again and read the cache alone.
        """
        rewriter = self.open(on_progress)
        if not isinstance(rewriter, LlmRewriter):
            return rewriter, []
        texts = [(text, kind) for _, text, kind in texts_of(state)]
        rewriter.prepare(texts)
        for text, kind in texts:
            rewriter.wordings(text, kind)
        counts = f"{rewriter.asked} requests; {rewriter.refused} wordings refused by law h;"
        return rewriter, [
            f"{counts} {rewriter.fallbacks} of {len(texts)} texts are worded by rules",
            *(f"warning: {said}" for said in [*rewriter.failures[:5], *rewriter.cache.corrupt[:5]]),
        ]


@dataclass(frozen=True)
class AugmenterOpener:
    """Makes the augmenter of the bundle in a file; pickled for each worker. `root` is where own operators are found.

    `envelope` is JSON: what was pickled is written with other fields left out, which would change its digest.
    """

    bundle: Path
    root: Path | None
    envelope: bytes
    rewriter: RewriterSettings

    def __call__(self) -> Augmenter:
        return Augmenter(
            read_bundle(self.bundle, verify=False),
            msgspec.json.decode(self.envelope, type=Envelope),
            rewriter=self.rewriter.open(),
            operators=find_operators(self.root),
        )
