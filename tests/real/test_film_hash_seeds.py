"""Do the film tools answer the same in processes that hash their texts differently?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import dataclasses
from codeai_lab.canonical import digest
from codeai_lab.run.film_tools import FilmTools, Fault
from codeai_lab.run.films import FILMS
from codeai_lab.store.film_sql import FilmDatabase
tools = FilmTools(faults=(Fault(tool="get_film", nth=1, kind="contradiction"),))
found = [tools.get_film(FILMS[7].film_id)]
for query in ("an artificial mind", "erased memories former relationship", "a robbery", "dreams"):
    for search in (tools.lexical_search, tools.vector_search):
        found.append([dataclasses.asdict(hit) for hit in search(query, len(FILMS))])
with FilmDatabase(map(dataclasses.asdict, FILMS)) as films:
    found.append(films.ask("SELECT theme, count(*) AS n FROM themes GROUP BY theme"))
    found.append(dataclasses.asdict(films.ask("SELECT titel FROM films")))
print(hash("film"), digest(found))
"""


def test_four_hash_seeds_give_one_answer() -> None:
    """FT1, VX1, LX3, FQ3: scores, ranks, records, rows and errors are the same under every PYTHONHASHSEED."""
    answers = []
    for seed in ("0", "1", "2026", "random"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answers.append(done.stdout.split())
    assert len({hashed for hashed, _ in answers}) > 1  # or the seeds would have changed nothing
    assert len({found for _, found in answers}) == 1
