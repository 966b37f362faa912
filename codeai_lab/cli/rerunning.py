"""How is evidence tried from a terminal: by playing it again, and by scoring whoever judges it?

Chapter: 004, "Checking it without trusting it".

Idea: two commands around one thought. What a bundle says can be asked of the program once more, and what a
verifier says is worth as much as the corruptions that it names.

Always true:
  RC1. `rerun` exits 0 only where every case is the same.
  RC2. `score` exits 0 only where every good bundle is accepted and every corruption named.
  RC3. Values out of a bundle are printed as JSON in ASCII: nothing in it can move a cursor.

Not here: playing again (`lessons.rerunning`), comparing (`prove.compare`), scoring (`prove.scoring`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.evidence import pinned_bundles
from codeai_lab.cli.printing import print_json, print_table, progress

if TYPE_CHECKING:
    from codeai_lab.lessons.rerunning import Rerun
    from codeai_lab.prove.compare import Compared, Difference
    from codeai_lab.prove.scoring import Score

LONGEST_VALUE = 200


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def rerun(bundle: Path, as_json: bool) -> None:
    """Play BUNDLE's frozen protocol again and compare, case by case.

    A case is `same` where all its fields are. Where some are not, it `differs` under the same versions and
    is `not comparable` under others, which are named.
    """
    from codeai_lab.lessons.rerunning import rerun as played_again

    with progress(f"rerun {bundle.name}") as advance:
        outcome = played_again(bundle, advance)
    if as_json:
        print_json(outcome.as_json())
    else:
        _print_rerun(outcome)
    if not outcome.same:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("verifier", metavar="VERIFIER.py", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(verifier: Path, as_json: bool) -> None:
    """Put good bundles and every corruption of each to VERIFIER.py, and count what it names.

    It is run as `python -I -S VERIFIER.py BUNDLE [--expect DIGEST] --json` and answers with its exit status,
    0 valid or 1 findings, and {"findings": [{"code": ..., "message": ...}]}. It runs with your rights.
    """
    from codeai_lab.prove.scoring import score as scored

    with progress(f"score {verifier.name}") as advance, _good_bundles() as good:
        outcome = scored(
            verifier,
            [folder for folder, _ in good.values()],
            expect={name: digest for name, (_, digest) in good.items()},
            progress=advance,
        )
    if as_json:
        print_json(outcome.as_json())
    else:
        _print_score(outcome)
    if not outcome.perfect:
        raise click.exceptions.Exit(1)


@contextmanager
def _good_bundles() -> Iterator[dict[str, tuple[Path, str]]]:
    """Give what is pinned, or freeze retry-effects under every rule set where nothing is."""
    if pinned := pinned_bundles():
        yield pinned
        return
    from codeai_lab.lessons import lesson_named
    from codeai_lab.lessons.freezing import freeze_lesson
    from codeai_lab.run.revisions import REVISIONS

    lesson, good = lesson_named("retry-effects"), {}
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        for rules in REVISIONS.values():
            name = f"{lesson.name}/{rules.name}"
            good[name] = (Path(scratch) / name, freeze_lesson(lesson, rules, Path(scratch) / name))
        yield good


def _print_rerun(outcome: Rerun) -> None:
    print_table(
        f"{outcome.lesson} under {outcome.revision}, played again",
        ("case", "verdict", "what differs", "frozen", "now"),
        [row for case in outcome.cases for row in _rows(case)],
    )
    if outcome.cases and (versions := outcome.cases[0].versions):
        click.echo("Other versions than when it was frozen:")
        for one in versions:
            click.echo(f"  {_shown(one.name)}: {_shown(one.frozen)} then, {_shown(one.again)} now")
    told = [same for same in outcome.ledger.values() if same is not None]
    if told and all(told):
        click.echo("The ledger's lines are the same bytes, in every case that is not marked.")
    elif False in told:
        others = [case for case, same in outcome.ledger.items() if same is False]
        click.echo(f"The ledger's lines are other bytes from the case {others[0]} on.")
    for finding in outcome.findings:
        click.echo(f"codeai-lab: {finding.code}, {finding.where}: {finding.message}", err=True)


def _rows(case: Compared) -> Iterator[tuple[str, ...]]:
    """Give a row for each field that differs; one where none does."""
    first = (case.case, str(case.verdict))
    if not case.fields:
        yield (*first, "", "", "")
    for place, one in enumerate(case.fields):
        yield (*(first if place == 0 else ("", "")), *_difference(one))


def _difference(one: Difference) -> tuple[str, str, str]:
    return _shown(one.name), _shown(one.frozen), _shown(one.again)


def _shown(value: Any) -> str:
    text = ascii(value)[1:-1] if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _print_score(outcome: Score) -> None:
    from codeai_lab.prove.corrupt import KINDS
    from codeai_lab.prove.scoring import Outcome

    shown = (Outcome.NAMED, Outcome.REFUSED_NOT_NAMED, Outcome.MISSED, Outcome.FAILED, Outcome.TIMED_OUT)
    rows: list[Sequence[object]] = []
    for kind in KINDS:
        met = [trial.outcome for trial in outcome.trials if trial.kind == kind.name]
        if met:
            rows.append((kind.name, *(met.count(one) or "" for one in shown)))
    print_table(f"{outcome.verifier}: how many bundles, for each corruption", ("", *shown), rows)
    counted = {one: len(outcome[one]) for one in Outcome}
    corrupted = sum(trial.kind is not None for trial in outcome.trials)
    click.echo(f"Of {corrupted} corruptions: {'; '.join(f'{counted[one]} {one}' for one in shown)}.")
    good = [trial for trial in outcome.trials if trial.kind is None]
    accepted = counted[Outcome.ACCEPTED]
    click.echo(f"Of {len(good)} trials with good bundles: {accepted} accepted, {len(good) - accepted} not.")
    for trial in good:
        if trial.outcome is not Outcome.ACCEPTED:
            click.echo(f"  {trial.bundle}: {trial.outcome}{', ' + trial.why if trial.why else ''}")
