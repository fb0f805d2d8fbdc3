"""The program: registers the commands and turns every error into text and an exit code.

Exit codes: 0 done; 1 faults or failure; 2 usage; 3 ran, and the gate failed; 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from harnessctl import __version__
from harnessctl.cli import (
    augment,
    compare,
    diff,
    docs,
    doctor,
    importing,
    init,
    models,
    new,
    render,
    run,
    schema,
    sets,
    show,
    train,
    uplift,
    validate,
    verify,
    view,
    world,
)
from harnessctl.cli import (
    compile as compile_command,
)
from harnessctl.cli import (
    eval as eval_command,
)


class Group(TyperGroup):
    """The program's commands. Ctrl-C ends one as an abort, which `main` reports; the library would say nothing."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


app = typer.Typer(
    name="harnessctl",
    cls=Group,
    help="Compile, run, evolve and train over the harness of a tool-using LLM agent.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Compile, run, evolve and train over the harness of a tool-using LLM agent."""
    if version:
        sys.stdout.write(f"harnessctl {__version__}\n")
        raise typer.Exit


for command in (
    init.init,
    validate.validate,
    compile_command.compile_,
    diff.diff,
    show.show,
    render.render,
    verify.verify,
    run.run,
    augment.augment,
    view.view,
    eval_command.eval_,
    eval_command.rescore,
    compare.compare,
    uplift.uplift,
    train.train,
    schema.schema,
    doctor.doctor,
    docs.docs,
):
    app.command(command.__name__.rstrip("_"))(command)
app.add_typer(new.app, name="new")
app.add_typer(importing.app, name="import")
app.add_typer(models.app, name="models")
app.add_typer(sets.app, name="sets")
app.add_typer(world.app, name="world")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code and never raises or shows a traceback for a known error."""
    from harnessctl.cli.process import open_streams
    from harnessctl.errors import HarnessctlError

    open_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    json = "--json" in arguments
    try:
        result = typer.main.get_command(app).main(args=arguments, prog_name="harnessctl", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except HarnessctlError as error:
        code = _report(error, json=json)
    except KeyboardInterrupt:
        code = _interrupted(json=json)
    except BrokenPipeError:
        code = _unread()
    except OSError as error:
        code = _refused(error, json=json)
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        code = _unread()  # so the command-line library answers a pipe that nobody reads any more
    except Exception as error:
        code = _click_error(error, json=json)
    if argv is None:
        sys.exit(code)
    return code


def _unread() -> int:
    """Nobody reads our output any more (`| head`): what is left of it is dropped, and that is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _refused(error: OSError, *, json: bool) -> int:
    """The system refused something that no command foresaw: a working directory that is gone, a full device."""
    from harnessctl.errors import StorageError

    where = f" {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO) and not where:
        # Our own output: what is left of it would fail again when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return _report(StorageError(f"the system refused{where}: {error.strerror or error}"), json=json)


def _interrupted(*, json: bool) -> int:
    from harnessctl.cli import output

    if json:
        output.json_data({"error": "interrupted", "hint": "", "faults": []})
    else:
        output.talk("interrupted")
    return 130


def _report(error: Exception, *, json: bool) -> int:
    """Show an error of ours: JSON on stdout when asked, text on stderr otherwise."""
    from harnessctl.cli import output
    from harnessctl.errors import FaultsError, HarnessctlError

    assert isinstance(error, HarnessctlError)
    if json:
        found = [f.as_dict() for f in error.faults] if isinstance(error, FaultsError) else []
        output.json_data({"error": error.message, "hint": error.hint, "faults": found})
    elif isinstance(error, FaultsError):
        output.faults(error.faults)
        output.talk(error.message)
    else:
        output.talk(error.render())
    return error.exit_code


def _click_error(error: Exception, *, json: bool) -> int:
    """Usage errors and exits of the command-line library; anything else is a fault of ours and is raised."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):
        return _interrupted(json=json)
    show = getattr(error, "show", None)
    if show is None:
        raise error
    message: Callable[[], str] | None = getattr(error, "format_message", None)
    if json and message is not None:
        from harnessctl.cli import output

        context = getattr(error, "ctx", None)
        hint = f"{context.command_path} -h" if context is not None else "harnessctl -h"
        output.json_data({"error": message(), "hint": hint, "faults": []})
    else:
        show()
    return int(getattr(error, "exit_code", 2))
