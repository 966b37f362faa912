"""How are the chapter's cases replayed from a terminal?

Chapter: 004, "The executed demo, read exactly".

Idea: `replay` plays a lesson and prints the three witnesses; `demo` goes the whole way once: replay under
every rule set, freeze, verify with the stand-alone verifier, verify what is pinned.

Always true:
  RP1. Every play is a real one: a ledger in a file, marker files, receipts, in a scratch folder.
  RP2. A row that is not as expected, or whose witnesses disagree, is a finding.

Not here: the cases (`lessons`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.exploring import COLUMNS, explored_rows, print_explored
from codeai_lab.cli.printing import print_json, print_witnesses, progress

if TYPE_CHECKING:
    from codeai_lab.lessons.cases import Lesson
    from codeai_lab.run.revisions import Revision


@click.command()
@click.argument("lesson")
@click.option("--case", "cases", multiple=True, metavar="C", help="Play only this case; may be given again.")
@click.option("--revision", metavar="R", help="Play under this rule set only; every one by default.")
@click.option(
    "--submissions",
    type=click.IntRange(2, 3),
    default=2,
    show_default=True,
    help="For schedules: of how many.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(
    lesson: str, cases: tuple[str, ...], revision: str | None, submissions: int, as_json: bool
) -> None:
    """Play LESSON's cases and show what ledger, world and summary each say.

    Lessons: retry-effects, retry-edges, retry-rerun; working-state (a producer that is really killed),
    schedules (every interleaving), crash-points (every boundary).
    """
    if lesson in COLUMNS:
        with progress(lesson) as advance:
            only = [revision] if revision else list(cases)
            rows = explored_rows(lesson, only=only, submissions=submissions, progress=advance)
        if as_json:
            print_json({"lesson": lesson, "rows": rows})
        else:
            print_explored(lesson, rows)
        return
    from codeai_lab.lessons import lesson_named
    from codeai_lab.run.revisions import REVISIONS, revision_named

    chosen = lesson_named(lesson)
    revisions = [revision_named(revision)] if revision else list(REVISIONS.values())
    rows = play_all(chosen, revisions, cases)
    if as_json:
        print_json({"lesson": chosen.name, "revision": revision, "rows": rows})
    else:
        print_witnesses(f"{chosen.name}: {chosen.question}", rows)
    surprises = list(unexpected(chosen, rows))
    for surprise in surprises:
        click.echo(f"codeai-lab: {surprise}", err=True)
    if surprises:
        raise click.exceptions.Exit(1)


@click.command()
def demo() -> None:
    """Replay retry-effects under every rule set, freeze it, verify it, verify what is pinned."""
    from codeai_lab.lessons import lesson_named
    from codeai_lab.lessons.freezing import freeze_lesson
    from codeai_lab.run.revisions import LAB, REVISIONS

    lesson = lesson_named("retry-effects")
    rows = play_all(lesson, list(REVISIONS.values()), ())
    print_witnesses(f"{lesson.name}: {lesson.question}", rows)
    failures = list(unexpected(lesson, rows))
    with tempfile.TemporaryDirectory(prefix="codeai-lab-demo-") as scratch:
        bundle = Path(scratch) / "bundle"
        digest = freeze_lesson(lesson, LAB, bundle)
        click.echo(f"\nFroze {lesson.name} under lab; the bundle's digest is {digest}.")
        click.echo("The stand-alone verifier, in an interpreter of its own, says:")
        script = [
            sys.executable,
            "-I",
            "-S",
            str(bundle / "data" / "verify.py"),
            str(bundle),
            "--expect",
            digest,
        ]
        said = subprocess.run(script, capture_output=True, text=True, check=False)
        click.echo(f"{said.stdout}{said.stderr}".rstrip())
        if said.returncode:
            failures.append("the fresh bundle was refused")
    failures += verify_pinned()
    for failure in failures:
        click.echo(f"codeai-lab: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(1)
    click.echo("\nEverything was as expected.")


def play_all(lesson: Lesson, revisions: Sequence[Revision], cases: Sequence[str]) -> list[dict[str, Any]]:
    """Play a lesson under several rule sets, each in a scratch folder of its own, and give all rows."""
    from codeai_lab.lessons.playing import chosen, play

    per_revision = len(chosen(lesson, cases))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch, progress(lesson.name) as advance:
        for place, revision in enumerate(revisions):
            done = iter(range(place * per_revision, (place + 1) * per_revision))
            played = play(
                lesson,
                revision,
                Path(scratch) / revision.name,
                only=cases,
                progress=lambda case, done=done: advance(  # type: ignore[misc]
                    case, next(done), per_revision * len(revisions)
                ),
            )
            rows += played.rows
    return rows


def unexpected(lesson: Lesson, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Name every value of a row that is not what the lesson expects, and every disagreement."""
    cases = {case.name: case for case in lesson.cases}
    said = []
    for row in rows:
        where = f"{row['case']} under {row['revision']}"
        expected = cases[row["case"]].expected_under(row["revision"]).as_json()
        said += [
            f"{where}: {name} is {row[name]} and {value} was expected."
            for name, value in expected.items()
            if row[name] != value
        ]
        low, high = row["effects_ledger"]
        if not low <= row["effects_world"] <= high:
            said.append(
                f"{where}: the ledger allows {low} to {high} effects, the world shows {row['effects_world']}."
            )
    return said


def verify_pinned() -> list[str]:
    """Verify every bundle of the checkout's `evidence/` against its index; give what is wrong."""
    from codeai_lab.cli.evidence import pinned_bundles
    from codeai_lab.prove.verify import verify

    pinned = pinned_bundles()
    if not pinned:
        click.echo("\nThere are no pinned bundles beside this installation; a clone has them in evidence/.")
        return []
    click.echo("\nPinned bundles, each against its digest in evidence/index.json:")
    failures = []
    for name, (folder, digest) in pinned.items():
        report = verify(folder, digest)
        click.echo(f"  {'valid' if report.valid else 'REFUSED'}, complete: {report.complete}  {name}")
        failures += [f"{name}: {finding.code}: {finding.message}" for finding in report.findings]
    return failures
