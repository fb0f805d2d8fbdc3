"""`harnessctl verify`: is this bundle what it says it is?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harnessctl.cli.options import Json


def verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle file.", show_default=False)],
    json: Json = False,
) -> None:
    """Check that a bundle is unaltered.

    The digest is computed anew; the bytes must be canonical, and the file's name must agree.
    """
    from harnessctl.bundle.files import encode_bundle, read_bundle
    from harnessctl.cli import output
    from harnessctl.errors import BundleError
    from harnessctl.storage import read_bytes

    found = read_bundle(bundle)
    if encode_bundle(found) != read_bytes(bundle):
        raise BundleError(f"{bundle}: the bytes are not the canonical form of its content", hint="compile it again")
    if bundle.name.endswith(".bundle.json") and bundle.name != found.file_name:
        raise BundleError(f"{bundle}: a bundle of this content is called {found.file_name}", hint="rename it back")
    if json:
        output.json_data({"name": found.name, "version": found.version, "digest": found.digest, "ok": True})
    else:
        output.data(f"{found.name} {found.version} {found.digest}: good")
