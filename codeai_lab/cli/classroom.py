"""How do notebooks get to a reader, open, and stay true?

Chapter: 004, "Do this now": thirty minutes beside the chapter.

Idea: `notebooks` copies the shipped ones and never writes over a reader's; `lab` opens JupyterLab on them;
`sync` runs them and stores what they say, or with `--check` says whether they still say it.

Always true:
  CR1. Nothing that a reader wrote is overwritten.

Not here: copying (`cli.notebooks`), running and comparing (`cli.sync`).
"""

from __future__ import annotations

from pathlib import Path

import click

from codeai_lab.cli.printing import progress

OWN_FOLDER = "codeai-lab-notebooks"


@click.command()
@click.argument("dest", type=click.Path(path_type=Path))
def notebooks(dest: Path) -> None:
    """Copy the notebooks into the folder DEST; what is there already is kept."""
    from codeai_lab.cli.notebooks import copy_to

    copied, kept = copy_to(dest)
    for name in copied:
        click.echo(f"copied  {name}")
    for name in kept:
        click.echo(f"kept    {name} (it was there)")


@click.command()
@click.argument("dest", required=False, type=click.Path(path_type=Path))
def lab(dest: Path | None) -> None:
    """Open JupyterLab on the notebooks in DEST, which are copied there first.

    Without DEST: on the checkout's own notebooks, or on a copy in codeai-lab-notebooks.
    """
    from codeai_lab.cli.notebooks import copy_to, open_lab

    own = Path("notebooks")
    if dest is None and (own / "00-start.ipynb").is_file():
        dest = own
    else:
        dest = dest or Path(OWN_FOLDER)
        copy_to(dest)
    raise click.exceptions.Exit(open_lab(dest))


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where a run gives other bytes.")
def sync(files: tuple[Path, ...], check: bool) -> None:
    """Run the notebooks and store what they say, the same bytes every time.

    Without FILES: the checkout's notebooks and those inside its evidence.
    """
    from codeai_lab.cli.kernel import NotebookFailedError
    from codeai_lab.cli.sync import Outcome, State, default_files
    from codeai_lab.cli.sync import sync as synced

    for path in files:
        if not path.is_file():
            raise NotebookFailedError(f"There is no notebook called {path.name}.")
    chosen = list(files) or default_files()
    ended: list[Outcome] = []
    with progress("sync") as advance:

        def note(outcome: Outcome) -> None:
            ended.append(outcome)
            advance(outcome.path.name, len(ended), len(chosen))

        outcomes = synced(chosen, check, note)
    for outcome in outcomes:
        click.echo(f"{outcome.state:<8} {outcome.path.name}{f'  {outcome.why}' if outcome.why else ''}")
    if any(outcome.state in (State.DIFFERS, State.FAILED) for outcome in outcomes):
        raise click.exceptions.Exit(1)
