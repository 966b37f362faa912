"""Does the room of pictures offer its names, and stay light?"""

from __future__ import annotations

import subprocess
import sys

import pytest

from codeai_lab import show
from codeai_lab.show import choosers


def test_every_name_that_is_offered_is_there() -> None:
    """Each name of `__all__` can be had, in order; the chooser is the one of its module."""
    assert all(callable(getattr(show, name)) for name in show.__all__)
    assert sorted(show.__all__) == show.__all__
    assert {"chooser", "mosaic", "schedules_table", "step_rows"} <= set(show.__all__)
    assert show.chooser is choosers.chooser


def test_a_name_that_is_not_offered_is_said() -> None:
    """As any module says it."""
    with pytest.raises(AttributeError, match=r"'codeai_lab\.show' has no attribute 'nonsense'"):
        getattr(show, "nonsense")  # noqa: B009


def test_importing_loads_no_widgets() -> None:
    """V3: not with the import, and with the first chooser that is asked for."""
    script = (
        "import sys, codeai_lab.show as show\n"
        "print('ipywidgets' in sys.modules, 'anywidget' in sys.modules)\n"
        "show.chooser\n"
        "print('ipywidgets' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False", "True"]
