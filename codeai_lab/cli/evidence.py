"""How is evidence frozen, verified and damaged from a terminal?

Chapter: 004, "Checking it without trusting it".

Idea: three commands around the room `prove`. `freeze` plays and keeps; `verify` prints findings by their
codes; `corrupt` makes a damaged copy, so that a reader can see each finding happen.

Always true:
  EV1. `verify` says the same as the stand-alone script on the same bundle.
  EV2. `corrupt` never touches the bundle that it is given, and neither command writes into another bundle.
  EV3. What can be refused is refused before a lesson is played; no notebook goes in that was not run.

Not here: what is checked (`prove.verify`), how each corruption works (`prove.corruptions`).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.printing import print_json, progress
from codeai_lab.errors import BundleError

if TYPE_CHECKING:
    from codeai_lab.prove.verify import Finding, Report


@click.command()
@click.argument("lesson")
@click.option(
    "--to",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder that becomes the bundle.",
)
@click.option("--revision", metavar="R", help="The rule set to play under; lab, where a lesson has several.")
@click.option(
    "--notebook", metavar="FILE", type=click.Path(path_type=Path), help="An executed notebook to put into it."
)
def freeze(lesson: str, to: Path, revision: str | None, notebook: Path | None) -> None:
    """Play LESSON and write the run as an evidence bundle.

    Lessons: those of requests, working-state, film-recovery, and those that are sampled.
    """
    from codeai_lab.lessons.freezable import freezable
    from codeai_lab.prove.bundle import require_outside

    chosen = freezable(lesson)
    rules = chosen.rules_named(revision)
    require_outside(to)
    if notebook is not None:
        require_executed(notebook)
    with progress(f"{lesson} under {rules}") as advance:
        digest = chosen.freeze(rules, to, notebook, advance)
    click.echo(f"{to.name} holds {lesson} under {rules}.")
    click.echo(f"Keep its digest somewhere else: {digest}")


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--expect", metavar="DIGEST", help="The digest that was kept outside the bundle.")
@click.option(
    "--notebook", "run_notebook", is_flag=True, help="Also run the notebook inside and compare its bytes."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(bundle: Path, expect: str | None, run_notebook: bool, as_json: bool) -> None:
    """Check BUNDLE without trusting it: files, chain, meaning, and with --expect its completeness."""
    from codeai_lab.prove.verify import CannotVerify
    from codeai_lab.prove.verify import verify as verified

    try:
        with progress(f"verify {bundle.name}"):
            report = verified(bundle, expect)
    except CannotVerify as error:
        raise BundleError(str(error)) from None
    if run_notebook and report.valid:
        report = with_notebook(bundle, report)
    if as_json:
        print_json(report.as_json())
    else:
        _print_report(bundle, report)
    if not report.valid or report.complete == "no":
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@click.argument("kind", required=False)
@click.option(
    "--to", metavar="DIR", type=click.Path(path_type=Path), help="The folder that becomes the damaged copy."
)
@click.option("--list", "list_kinds", is_flag=True, help="List the kinds that are caught from inside.")
@click.option("--outside", is_flag=True, help="With --list: those that only an outside digest catches.")
def corrupt(bundle: Path | None, kind: str | None, to: Path | None, list_kinds: bool, outside: bool) -> None:
    """Make a copy of BUNDLE that is damaged in one named way."""
    from codeai_lab.prove import corrupt as corrupting
    from codeai_lab.prove.bundle import require_outside
    from codeai_lab.prove.copies import require_copyable

    if outside and not list_kinds:
        raise click.UsageError("--outside goes with --list; `codeai-lab corrupt --list --outside`.")
    if list_kinds and (bundle, kind, to) != (None, None, None):
        raise click.UsageError("--list stands alone, or with --outside; leave the bundle, kind and --to out.")
    if list_kinds:
        for one in corrupting.KINDS:
            if one.outside == outside:
                click.echo(f"{one.name:<28} {one.summary}")
        return
    if bundle is None or kind is None or to is None:
        raise click.UsageError(
            "Name a bundle, a kind and --to DIR; `codeai-lab corrupt --list` names the kinds."
        )
    require_outside(to)
    if (bundle / "bagit.txt").is_file():
        require_copyable(bundle)
    corrupting.corrupt(bundle, kind, to)
    click.echo(f"{to.name} is a copy of {bundle.name}, damaged: {kind}.")


def require_executed(notebook: Path) -> None:
    """Raise BundleError (definite) unless a file is a notebook of format 4 whose code cells were all run.

    It is read as plain JSON: the library of notebooks takes longer to import than most lessons to play.
    """
    if not notebook.is_file():
        raise BundleError(f"There is no notebook called {notebook.name}.")
    try:
        code = _code_cells(json.loads(notebook.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(
            f"{notebook.name} is not a notebook of format 4; name one that Jupyter stored."
        ) from None
    never_run = [number for number, cell in code if type(cell.get("execution_count")) is not int]
    if never_run:
        raise BundleError(
            f"Cell number {never_run[0]} of {notebook.name} was never run; run them all and store it first."
        )


def _code_cells(notebook: Any) -> list[tuple[int, dict[str, Any]]]:
    """Give the code cells and their numbers, counted from 1; raises one of several where that fails."""
    if notebook["nbformat"] != 4 or type(notebook["nbformat_minor"]) is not int:
        raise ValueError("another format")
    if not isinstance(notebook["cells"], list):
        raise TypeError("no cells")
    cells = list(enumerate(notebook["cells"], start=1))
    if any(cell["cell_type"] not in ("code", "markdown", "raw") for _, cell in cells):
        raise ValueError("an unknown kind of cell")
    code = [(number, cell) for number, cell in cells if cell["cell_type"] == "code"]
    if any(not isinstance(cell["outputs"], list) for _, cell in code):
        raise ValueError("a code cell without outputs")
    return code


def with_notebook(bundle: Path, report: Report) -> Report:
    """Run a copy of the bundle's notebook and add a finding when its bytes differ."""
    from codeai_lab.cli.sync import State, sync
    from codeai_lab.prove.verify import Finding

    stored = bundle / "data" / "notebook.ipynb"
    if not stored.is_file():
        raise BundleError(f"{bundle.name} holds no notebook; verify it without --notebook.")
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        copy = Path(scratch) / "notebook.ipynb"
        copy.write_bytes(stored.read_bytes())
        outcome = sync([copy], check=True)[0]
    if outcome.state is State.SAME:
        return report
    finding = Finding(code="notebook-differs", where="data/notebook.ipynb", message=outcome.why)
    return type(report)(valid=False, complete=report.complete, findings=(*report.findings, finding))


def pinned_bundles() -> dict[str, tuple[Path, str]]:
    """Give the checkout's pinned bundles: name -> (folder, digest in the index); none outside one."""
    from codeai_lab.prove.bundle import read_index

    for root in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        index = root / "evidence" / "index.json"
        if index.is_file():
            return {name: (index.parent / name, digest) for name, digest in sorted(read_index(index).items())}
    return {}


def _print_report(bundle: Path, report: Report) -> None:
    click.echo(f"{bundle.name}: {'valid' if report.valid else 'not valid'}; complete: {report.complete}")
    for finding in report.findings:
        click.echo(_line(finding))
    if report.valid and report.complete == "not checked":
        click.echo("  Completeness needs the digest that was kept outside: --expect DIGEST.")


def _line(finding: Finding) -> str:
    return f"  {finding.code}  {finding.where}: {finding.message}"
