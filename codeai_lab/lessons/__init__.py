"""Which demos are there, and what is expected of each?

One module a lesson: its cases in order, what is asked in each, and what each rule set must give. `cases`
holds the words, `playing` plays a case on a real ledger and a real world, `freezing` turns a played lesson
into evidence.
"""

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.cases import Lesson
from codeai_lab.lessons.retry_edges import RETRY_EDGES
from codeai_lab.lessons.retry_effects import RETRY_EFFECTS
from codeai_lab.lessons.retry_rerun import RETRY_RERUN

LESSONS = {lesson.name: lesson for lesson in (RETRY_EFFECTS, RETRY_EDGES, RETRY_RERUN)}


# Those whose rows are not cases of requests; each is a module of its own.
ROWS_OF_THEIR_OWN = (
    "working-state", "schedules", "crash-points", "film-recovery", "durable-memory", "watchlist",
    "backoff", "contention", "overload", "layers", "throttling", "hedging", "duplicates", "libraries",
)  # fmt: skip


def lesson_named(name: str) -> Lesson:
    """Give a lesson of cases by its name.

    Raises: RefusedRequestError naming all lessons that there are, or saying that this one has no cases.
    """
    if name in ROWS_OF_THEIR_OWN:
        raise RefusedRequestError(f"{name} has rows of its own and no cases of requests; replay it.")
    if name not in LESSONS:
        there = ", ".join([*LESSONS, *ROWS_OF_THEIR_OWN])
        raise RefusedRequestError(f"There is no lesson called {name}; there are: {there}.")
    return LESSONS[name]
