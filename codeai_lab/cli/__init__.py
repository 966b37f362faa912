"""What can be done from a command line?

Chapter: 004, "Do this now": replay, freeze, verify, corrupt, without opening a notebook.

Idea: one group of commands, each a thin shell around one function of the package. What a command needs is
imported when it runs, so that `--help` answers at once.

Always true:
  CL1. Exit status 0: as expected. 1: a finding, which is printed. 2: it could not run, with one sentence why.
  CL2. No traceback reaches a user, whatever goes wrong; CODEAI_LAB_TRACEBACK=1 asks for one.
  CL3. `--json` prints one object on standard output and nothing else there.

Not here: the work itself; nobody imports this room.
"""

from __future__ import annotations

import os
import sys

try:
    import click
except ModuleNotFoundError:  # without it, nothing below can say so
    print("codeai-lab: click is not installed; run make demo, or pip install .", file=sys.stderr)
    sys.exit(2)

from codeai_lab import __version__
from codeai_lab.cli import classroom, evidence, ledgers, plotting, replaying, rerunning
from codeai_lab.errors import LabError

COULD_NOT_RUN = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeai-lab")
def cli() -> None:
    """When may a program repeat work without duplicating an effect?

    Exit status: 0 as expected, 1 a finding, 2 could not run, 130 interrupted.
    """


for command in (
    replaying.replay, replaying.demo, plotting.plot,
    evidence.freeze, evidence.verify, evidence.corrupt,
    ledgers.inspect, ledgers.restore,
    rerunning.rerun, rerunning.score,
    classroom.notebooks, classroom.lab, classroom.sync,
):  # fmt: skip
    cli.add_command(command)


def main() -> None:
    """Run the command line and leave with its exit status."""
    try:
        # Outside its standalone mode click gives the status that a command asked for as the result.
        status = cli.main(standalone_mode=False, prog_name="codeai-lab")
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(COULD_NOT_RUN)
    except (KeyboardInterrupt, click.Abort):
        _say("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has read enough; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except LabError as error:
        _say(str(error))
        sys.exit(COULD_NOT_RUN)
    except Exception as error:
        if os.environ.get("CODEAI_LAB_TRACEBACK"):
            raise
        _say(_unforeseen(error))
        sys.exit(COULD_NOT_RUN)


def _unforeseen(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "There is not enough memory for this; ask for fewer clients, runs or cases."
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("codeai_lab"):
        return f"{error.name} is not installed; run make demo, or pip install ."
    if isinstance(error, OSError) and error.strerror:
        return f"The system refused: {error.strerror}. Check space, permissions and the names given."
    return (
        f"This was not foreseen ({type(error).__name__}). "
        "Set CODEAI_LAB_TRACEBACK=1 and run it again to see where it happened."
    )


def _say(sentence: str) -> None:
    click.echo(f"codeai-lab: {sentence}", err=True)
