"""Each lesson, played once under each rule set, for all tests that look at the same play."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from codeai_lab.lessons import lesson_named
from codeai_lab.lessons.playing import Played, play
from codeai_lab.run.revisions import revision_named


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Played]:
    """Give a lesson as played under a rule set."""

    @cache
    def give(lesson: str, rules: str) -> Played:
        folder = tmp_path_factory.mktemp(f"{lesson}-{rules}")
        return play(lesson_named(lesson), revision_named(rules), folder)

    return give
