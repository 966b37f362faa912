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

from codeai_lab.cli.asking import (
    LARGEST_SEED,
    MOST_RUNS,
    MOST_TRIALS,
    AsksForNumbers,
    Whole,
)
from codeai_lab.cli.exploring import LESSONS as EXPLORED
from codeai_lab.cli.exploring import explored_rows, print_explored, unexpected_of
from codeai_lab.cli.printing import print_json, print_witnesses, progress

if TYPE_CHECKING:
    from codeai_lab.lessons.cases import Lesson
    from codeai_lab.run.revisions import Revision


@click.command(cls=AsksForNumbers)
@click.argument("lesson")
@click.option("--case", "cases", multiple=True, metavar="C", help="Play only this case; may be given again.")
@click.option("--revision", metavar="R", help="Play under this rule set only; every one by default.")
@click.option(
    "--submissions",
    type=Whole(2, 3),
    metavar="2|3",
    help="For schedules: of how many; 2 by default. Of 3, all rules take most of a minute.",
)
@click.option(
    "--clients",
    multiple=True,
    type=Whole(1),
    metavar="N…",
    help="For contention: how many clients, one number or more, up to 5,000; for backoff, how many are "
    "sampled, up to 50,000; for libraries, how many loops are driven, from 2 to 5,000.",
)
@click.option(
    "--runs",
    type=Whole(1, MOST_RUNS),
    metavar="R",
    help=f"For contention: runs of each cell, up to {MOST_RUNS:,}.",
)
@click.option(
    "--trials",
    type=Whole(1, MOST_TRIALS),
    metavar="T",
    help=f"For duplicates: requests of each row, up to {MOST_TRIALS:,}.",
)
@click.option(
    "--seed", type=Whole(0, LARGEST_SEED), metavar="S", help="For what is sampled: the seed, below 2^53."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object.",
)
def replay(
    lesson: str,
    cases: tuple[str, ...],
    revision: str | None,
    as_json: bool,
    clients: tuple[int, ...],
    **sizes: int | None,
) -> None:
    """Play LESSON's cases and show what ledger, world and summary each say.

    Of requests: retry-effects, retry-edges, retry-rerun. Of processes that are killed: working-state. Of
    every order and every place to stop: schedules, crash-points. Of recovery: film-recovery, durable-memory,
    watchlist. Of waiting and its cost: backoff, contention, overload, layers, throttling, hedging,
    duplicates, libraries.
    """
    asked = {"case": cases, "revision": revision, "clients": clients, **sizes}
    if lesson in EXPLORED:
        with progress(lesson) as advance:
            rows = explored_rows(lesson, asked, advance)
        if as_json:
            print_json({"lesson": lesson, "rows": rows})
        else:
            print_explored(lesson, rows)
        exit_with(unexpected_of(lesson, rows))
        return
    for name in ("clients", *sizes):
        if asked[name] not in (None, ()):
            raise click.UsageError(f"{lesson} takes no --{name}.")
    from codeai_lab.lessons import lesson_named
    from codeai_lab.run.revisions import REVISIONS, revision_named

    chosen = lesson_named(lesson)
    revisions = [revision_named(revision)] if revision else list(REVISIONS.values())
    rows = play_all(chosen, revisions, cases)
    if as_json:
        print_json({"lesson": chosen.name, "revision": revision, "rows": rows})
    else:
        print_witnesses(f"{chosen.name}: {chosen.question}", rows)
    exit_with(unexpected(chosen, rows))


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
    exit_with(failures)
    click.echo("\nEverything was as expected.")


def exit_with(surprises: Sequence[str]) -> None:
    """Say what is not as expected, each in a line, and leave with status 1; go on where there is nothing."""
    for surprise in surprises:
        click.echo(f"codeai-lab: {surprise}", err=True)
    if surprises:
        raise click.exceptions.Exit(1)


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
