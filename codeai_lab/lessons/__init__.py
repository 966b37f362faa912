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


def lesson_named(name: str) -> Lesson:
    """Give a lesson by its name.

    Raises: RefusedRequestError naming those that there are.
    """
    if name not in LESSONS:
        raise RefusedRequestError(f"There is no lesson called {name}; there are: {', '.join(LESSONS)}.")
    return LESSONS[name]
