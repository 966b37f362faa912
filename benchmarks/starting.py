"""What does somebody wait for who only asks for help?

Idea: the command line loads what a command needs when that command runs. What `--help` must never load is
listed here; how long it takes is given against an interpreter that loads only click and rich.

Always true: every start is a fresh process.

Not here: the commands themselves.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable

from benchmarks.rounds import Row, Timed, side_by_side

HEAVY = {"duckdb", "pandas", "numpy", "matplotlib", "ipywidgets"}
_HELP = """
import sys
sys.argv = ['codeai-lab', '--help']
from codeai_lab.cli import main
try:
    main()
finally:
    print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))
"""


def starting(*, rounds: int) -> list[Row]:
    """Ask for help in a fresh process, look at what was loaded, and time it."""
    if importlib.util.find_spec("codeai_lab.cli") is None:
        return [Row(name="codeai-lab --help", ratio=None, remark="there is no command line to measure")]
    answer = _python(_HELP)
    loaded = HEAVY & set(answer.splitlines()[-1].split())
    times = side_by_side(
        {
            "help": lambda: lambda: _python(_HELP),
            "click and rich": lambda: lambda: _python("import click, rich.console"),
        },
        rounds=rounds,
    )
    return [
        Row(
            name="codeai-lab --help / python that imports click and rich",
            ratio=times.ratio("help", "click and rich"),
            bound="loads none of " + ", ".join(sorted(HEAVY)),
            held=not loaded,
            remark=f"{'loads ' + ', '.join(sorted(loaded)) if loaded else ''} "
            f"{times.of('help').median * 1e3:.0f} ms".strip(),
        )
    ]


def importing(*, rounds: int) -> list[Row]:
    """Import what simulates, in a fresh process, against an interpreter that imports NumPy alone."""
    statements = {
        "numpy": "import numpy",
        "package": "import codeai_lab",
        "contention": "import codeai_lab.explore.contention",
        "overload": "import codeai_lab.explore.overload",
        "duplicates": "import codeai_lab.explore.duplicates",
    }
    variants: dict[str, Callable[[], Timed]] = {
        name: lambda statement=statement: lambda: _python(statement)  # type: ignore[misc]
        for name, statement in statements.items()
    }
    times = side_by_side(variants, rounds=rounds)
    return [
        Row(
            name=f"{statements[name]} / import numpy, each in a fresh process",
            ratio=times.ratio(name, "numpy"),
            remark=f"{times.of(name).median * 1e3:.0f} ms",
        )
        for name in list(statements)[1:]
    ]


def _python(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout
