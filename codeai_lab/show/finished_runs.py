"""How do the runs that are over differ?

Chapter: 003, "Play the trace below": the end of it, where the policies stand side by side.

Idea: what a finished branch says of itself is a row. It is named by its number and by the choices that led to
it, the same choice several times in a row said one time.

    run                 rules    died after           effects
    1 go on x7, die     lab      perform(Exception)   1

Always true:
  FR1. One row for each branch that is over, in the order in which they were finished.
  FR2. A column is there when any row has it; a row that lacks it shows a dash.

Not here: which branches there are (`show.stepping_model`).
"""

from __future__ import annotations

from itertools import groupby

from codeai_lab.show.stepping_model import Kept, SteppingModel
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import NOTHING, say


def comparison(model: SteppingModel) -> ShownTable | None:
    """Compare the finished branches; None while there is none."""
    ends = model.finished()
    if not ends:
        return None
    names = list(dict.fromkeys(name for end in ends for name in end.frame.outcome))
    return ShownTable(
        caption="Finished runs, side by side",
        head=("run", *(say(name).replace("_", " ") for name in names)),
        body=tuple(
            (run_name(model, end), *(say(end.frame.outcome.get(name, NOTHING)) for name in names))
            for end in ends
        ),
    )


def run_name(model: SteppingModel, end: Kept) -> str:
    """Name a finished branch by its number and by what was chosen on the way."""
    ways = [state.choice for state in model.branch(end) if state.choice is not None]
    runs = [(say(way), len(list(group))) for way, group in groupby(ways)]
    said = ", ".join(way if times == 1 else f"{way} x{times}" for way, times in runs)
    return " ".join(filter(None, (str(model.finished().index(end) + 1), said)))
