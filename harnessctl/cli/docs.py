"""`harnessctl docs`: the documentation, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def docs(
    page: Annotated[str | None, typer.Argument(help="A page; none: list them.", show_default=False)] = None,
) -> None:
    """Print a page of the documentation."""
    import difflib
    import sys

    from harnessctl.cli import output
    from harnessctl.errors import UsageError
    from harnessctl.manifests.templates import docs_folder

    pages = {path.stem: path for path in sorted(docs_folder().glob("*.md"))}
    if page is None:
        for name, path in pages.items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            output.data(f"{name:<16} {title}")
        return
    if page not in pages:
        near = difflib.get_close_matches(page, pages, n=1)
        raise UsageError(f"no page {page!r}", hint=f"did you mean {near[0]}?" if near else f"pages: {', '.join(pages)}")
    text = pages[page].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        output.console().print(Markdown(text))
    else:
        output.data(text.rstrip())
