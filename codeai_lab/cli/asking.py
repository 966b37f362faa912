"""How is a command told how many, and what does it say to a number that it does not take?

Chapter: 000, section 15.7: a bounded policy needs a limit; so does a question that a terminal can ask.

Idea: every number has a range, and a number outside it is answered with the range, in a sentence. Only
--clients takes several: those that stand right after it are all its own, each of them once.

Always true:
  AS1. A number out of its range is refused before anything is worked out.
  AS2. A number that stands anywhere else than after its option is refused, and so is a second lesson.

Not here: the ranges that depend on the lesson (`cli.exploring`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

MOST_RUNS, MOST_TRIALS, LARGEST_SEED = 100_000, 1_000_000_000, 2**53 - 1
LONGEST = 40  # characters of a wrong word that are said again


class Whole(click.IntRange):
    """A whole number within a range, refused with the range in words; without `most`, from `least`."""

    def __init__(self, least: int, most: int | None = None) -> None:
        super().__init__(least, most)
        upto = "" if most is None else f" to {most:,}"
        self.wanted = f"give a whole number from {least:,}{upto}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            said = str(value)
            shown = said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
            self.fail(f"{self.wanted}, not {shown!r}.", param, ctx)


class AsksForNumbers(click.Command):
    """A command of one lesson, whose --clients may be followed by several numbers."""

    allow_extra_args = True  # so that what is too much is refused here, by what it is

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        more = super().parse_args(ctx, list(_each_with_its_option(args)))
        if more and all(map(_is_number, more)):
            raise click.UsageError("Numbers stand after --clients only, and right after it.", ctx)
        if more:
            raise click.UsageError(
                f"{ctx.info_name} takes one lesson at a time; leave out {' '.join(more)}.", ctx
            )
        return more


def _each_with_its_option(words: Sequence[str]) -> Iterator[str]:
    """Write `--clients 3 5` as `--clients 3 --clients 5`."""
    own, first = False, False
    for word in words:
        if own and not first and _is_number(word):
            yield "--clients"
        elif not first:
            own = False
        yield word
        first = word == "--clients"
        own = own or first or word.startswith("--clients=")


def _is_number(word: str) -> bool:
    return word[:1].isdigit()
