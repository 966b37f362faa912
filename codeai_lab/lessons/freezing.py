"""How does a played lesson become evidence?

Chapter: 004, "Checking it without trusting it": frozen protocol, no fixes during the run.

Idea: the protocol is written to a file before anything is played and read back from it afterwards; the
ledger's lines, the worlds and the producer's rows are put beside it unchanged.

Always true:
  FZ1. The protocol file is written before the run and never after.
  FZ2. Lesson, rule set and package version alone decide the bytes, apart from `environment.json`, the digests
       over it, and cases that are marked `threads`.

Not here: the form of a bundle (`prove.bundle`), judging one (`prove.verify`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from codeai_lab import __version__
from codeai_lab.lessons.cases import Lesson
from codeai_lab.lessons.playing import Played, play
from codeai_lab.prove.bundle import describe, environment, freeze
from codeai_lab.run.revisions import Revision

PRODUCER = f"codeai_lab {__version__}"


def freeze_lesson(
    lesson: Lesson,
    revision: Revision,
    to: Path,
    *,
    notebook: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> str:
    """Play a lesson under one rule set and write the bundle `to`; give the bundle's digest.

    Args:
        to: the folder that becomes the bundle; missing or empty.
        notebook: an executed notebook to put into it.
        progress: is told the name of each case before it is played.

    Raises: BundleError (definite) when `to` is taken; nothing is left behind then.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        protocol_file = Path(scratch) / "protocol.json"
        protocol_file.write_text(json.dumps(lesson.protocol(revision.name)), encoding="utf-8")
        played = play(
            lesson, revision, Path(scratch) / "play", evidence_label="pinned run", progress=progress
        )
        protocol = json.loads(protocol_file.read_text(encoding="utf-8"))
        return freeze(
            to,
            protocol=protocol,
            ledger=played.journal,
            world=played.world,
            results=results_of(played),
            environment=environment(),
            readme=describe(protocol, producer=PRODUCER),
            producer=PRODUCER,
            notebook=notebook,
        )


def results_of(played: Played) -> dict[str, Any]:
    """Give what the producer says about a play, the content of results.json."""
    return results(played.lesson.name, played.revision.name, played.rows)


def results(lesson: str, rules: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the content of results.json for any lesson's rows."""
    return {
        "format": "codeai-lab-results-v1",
        "lesson": lesson,
        "revision": rules,
        "producer": {"name": "codeai_lab", "version": __version__},
        "rows": list(rows),
    }
