"""Bundles: a compiled harness state, its file and its digest."""

from harnessctl.bundle.files import Bundle, encode_bundle, make_bundle, read_bundle, state_digest, write_bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Ref, Text, render_text

__all__ = [
    "Bundle",
    "HarnessState",
    "Ref",
    "Text",
    "encode_bundle",
    "make_bundle",
    "read_bundle",
    "render_text",
    "state_digest",
    "write_bundle",
]
