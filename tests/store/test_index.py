"""The laws of store.index: answers in SQL, and nothing but answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from ledger_contract import draft
from ledger_files import NAME, Made, contents

from codeai_lab.errors import QueryRefusedError
from codeai_lab.store.chain import read_batches, start_of
from codeai_lab.store.index import Index
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBLedger]:
    with DuckDBLedger(tmp_path_factory.mktemp("asked") / NAME) as ledger:
        ledger.append(draft("a", key="k1", payload={"n": 1}), draft("b", key=None, payload={"n": 2}))
        yield ledger


@pytest.fixture(params=["writer", "reader"])
def asked(ledger: DuckDBLedger, request: pytest.FixtureRequest) -> Iterator[DuckDBLedger | LedgerReader]:
    """Give the ledger as its writer has it, and as a reader beside it."""
    if request.param == "writer":
        yield ledger
    else:
        with LedgerReader(str(ledger.journal).removesuffix(".journal.jsonl")) as reader:
            yield reader


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        ("SELECT seq, event_id FROM events ORDER BY seq", ("seq", "event_id"), ((1, "a"), (2, "b"))),
        ("FROM events SELECT count(*) AS n;", ("n",), ((2,),)),
        ("WITH e AS (SELECT * FROM events) SELECT max(seq) AS m FROM e -- and no more", ("m",), ((2,),)),
        ("SELECT payload->>'$.n' AS n FROM events WHERE idempotency_key IS NULL", ("n",), (("2",),)),
        ("SELECT batch, kind FROM events WHERE seq = 2", ("batch", "kind"), (((2, 2), "action.requested"),)),
        ("VALUES (1), (2)", ("col0",), ((1,), (2,))),
        ("SELECT 1 AS a WHERE false", ("a",), ()),
    ],
)
def test_a_select_is_answered(
    asked: DuckDBLedger | LedgerReader, query: str, columns: tuple[str, ...], rows: tuple[object, ...]
) -> None:
    """X2: one SELECT, in whatever form DuckDB takes one, is answered with names and rows."""
    answer = asked.sql(query)
    assert answer.columns == columns
    assert answer.rows == rows


REFUSED = [
    "",
    ";",
    "-- nothing",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE events",
    "INSERT INTO events SELECT * FROM events",
    "UPDATE events SET kind = 'x'",
    "DELETE FROM events",
    "TRUNCATE events",
    "DROP TABLE events",
    "CREATE TABLE t(a INTEGER)",
    "CREATE TABLE t AS SELECT * FROM events",
    "ALTER TABLE events ADD COLUMN x INTEGER",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CHECKPOINT",
    "ATTACH ':memory:' AS other",
    "USE memory",
    "SET threads = 4",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM events",
    "PREPARE q AS SELECT 1",
    "EXECUTE q",
    "VACUUM",
    "COPY events TO 'out.csv'",
    "COPY (SELECT 1) TO 'out.csv'",
    "EXPORT DATABASE 'out'",
    "IMPORT DATABASE 'out'",
    "WITH d AS (DELETE FROM events RETURNING *) SELECT * FROM d",
    "SELECT * FROM read_text('{here}')",
    "SELECT * FROM read_csv('{here}')",
    "SELECT * FROM read_json('{here}')",
    "SELECT * FROM '{here}'",
    "SELECT * FROM glob('*')",
    "SELECT * FROM sniff_csv('{here}')",
    "SELECT * FROM local_variable",
    "SELECT nothing FROM events",
    "SELECT * FROM missing_table",
    "SELECT error('said by the query')",
    "SELECT CAST('x' AS INTEGER)",
    "SELECT ?",
    "not SQL at all",
    "SELECT '\ud800'",
]


def test_anything_else_is_refused_in_one_sentence(
    asked: DuckDBLedger | LedgerReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X2: what is not one SELECT, what would write, read a file or a variable, and what fails: refused."""
    monkeypatch.chdir(tmp_path)
    here = tmp_path / "here.csv"
    here.write_text("a\n1\n")
    local_variable = [1, 2]
    for query in REFUSED:
        with pytest.raises(QueryRefusedError) as refused:
            asked.sql(query.replace("{here}", str(here)))
        assert "\n" not in str(refused.value), query
        assert len(str(refused.value)) < 400, query
    assert local_variable == [1, 2]
    assert set(contents(tmp_path)) == {"here.csv"}
    assert asked.sql("SELECT list(event_id ORDER BY seq) FROM events").rows == ((["a", "b"],),)
    assert asked.sql("SELECT current_setting('enable_external_access')").rows == ((False,),)


def test_what_is_not_text_is_refused(ledger: DuckDBLedger) -> None:
    """X2: a query is text."""
    for query in (None, 5, b"SELECT 1"):
        with pytest.raises(QueryRefusedError):
            ledger.sql(query)  # type: ignore[arg-type]


def test_a_query_changes_nothing_even_where_a_function_would(ledger: DuckDBLedger) -> None:
    """X2: whatever a query calls, the ledger goes on as if nobody had asked."""
    for query in ("SELECT setseed(0.5)", "SELECT write_log('x')", "SELECT * FROM force_checkpoint()"):
        try:
            ledger.sql(query)
        except QueryRefusedError:
            continue
    assert ledger.sql("SELECT count(*) FROM events").rows == ((2,),)


def test_sql_sees_everything_that_was_appended(tmp_path: Path) -> None:
    """A query is answered over all events so far, those of the last append too."""
    with DuckDBLedger(tmp_path / NAME) as ledger:
        for number in range(1, 6):
            ledger.append(draft(f"{number}a"), draft(f"{number}b"))
            assert ledger.sql("SELECT count(*), max(seq) FROM events").rows == ((2 * number, 2 * number),)


def test_only_what_is_above_the_mark_is_added(tmp_path: Path, made: Made) -> None:
    """X1: lines that the index has already are not added again, and the mark reaches where it is told."""
    (tmp_path / "j").write_bytes(made.journal)
    batches = list(read_batches(tmp_path / "j"))
    lines = [line for _, batch in batches for _, line in batch]
    index = Index(":memory:")
    created = made.journal.splitlines()[0]
    index.create(created)
    index.add(lines[:3], batches[1][0])
    index.add(lines[:3], batches[1][0])
    index.add(lines, batches[-1][0])
    index.add([], batches[-1][0])
    mark = index.mark()
    assert mark is not None
    assert (mark.created, mark.end) == (created, batches[-1][0])
    assert list(index.lines(after_seq=0)) == lines
    assert list(index.lines(after_seq=4)) == lines[4:]
    index.close()


def test_filled_line_by_line_or_by_duckdb_it_holds_the_same(tmp_path: Path, made: Made) -> None:
    """X3: an index rebuilt by DuckDB itself gives the same lines as one filled as they came."""
    (tmp_path / "j").write_bytes(made.journal)
    batches = list(read_batches(tmp_path / "j"))
    created = made.journal.splitlines()[0]
    index = Index(":memory:")
    index.create(created)
    index.fill_from(tmp_path / "j", after=start_of(created), end=batches[1][0])
    index.fill_from(tmp_path / "j", after=batches[1][0], end=batches[-1][0])
    assert list(index.lines(after_seq=0)) == [line for _, batch in batches for _, line in batch]
    mark = index.mark()
    assert mark is not None
    assert mark.end == batches[-1][0]
    index.close()


def test_a_failed_transaction_leaves_rows_and_mark_as_they_were(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X1: rows and mark change together or not at all."""

    def fails(*_: object) -> None:
        raise duckdb.DataError("no")

    (tmp_path / "j").write_bytes(made.journal)
    batches = list(read_batches(tmp_path / "j"))
    index = Index(":memory:")
    index.create(made.journal.splitlines()[0])
    before = index.mark()
    with monkeypatch.context() as patched:
        patched.setattr(Index, "_move_mark", fails)
        with pytest.raises(duckdb.DataError):
            index.add([line for _, line in batches[0][1]], batches[0][0])
    assert index.mark() == before
    assert list(index.lines(after_seq=0)) == []
    index.close()
