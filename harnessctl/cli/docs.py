"""`harnessctl docs`: the documentation, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from harnessctl.cli.options import Json, pages


def docs(
    page: Annotated[
        str | None, typer.Argument(help="A page; none: list them.", show_default=False, autocompletion=pages)
    ] = None,
    json: Json = False,
) -> None:
    """Print a page of the documentation."""
    import difflib
    import sys

    from harnessctl.cli import output
    from harnessctl.errors import UsageError
    from harnessctl.manifests.templates import docs_folder

    found = {path.stem: path for path in sorted(docs_folder().glob("*.md"))}
    if page is None:
        titles = {name: path.read_text(encoding="utf-8").partition("\n")[0] for name, path in found.items()}
        if json:
            output.json_data([{"page": name, "title": title.lstrip("# ")} for name, title in titles.items()])
            return
        for name, title in titles.items():
            output.data(f"{name:<16} {title.lstrip('# ')}")
        return
    if page not in found:
        near = difflib.get_close_matches(page, found, n=1)
        raise UsageError(f"no page {page!r}", hint=f"did you mean {near[0]}?" if near else f"pages: {', '.join(found)}")
    text = found[page].read_text(encoding="utf-8")
    if json:
        output.json_data({"page": page, "text": text})
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        output.console().print(Markdown(text))
    else:
        output.data(text.rstrip())
