"""Is the file of an effect service whole, its own, and one process's at a time?"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from codeai_lab.decide.retention import RequestId, Retained
from codeai_lab.errors import (
    LedgerError,
    LedgerFailedError,
    LedgerInUseError,
    LedgerNotFoundError,
    RefusedRequestError,
)
from codeai_lab.store.effect_file import EffectFile
from codeai_lab.store.ledger import DuckDBLedger

FIRST = RequestId(client_id="c1", sequence=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects.duckdb"


def test_a_second_opening_is_refused_in_one_sentence(path: Path) -> None:
    """One holder at a time, in this process too; afterwards the file is free again."""
    file = EffectFile(path)
    with pytest.raises(LedgerInUseError, match=r"^The effect service effects\.duckdb is open already"):
        EffectFile(path)
    file.close()
    file.close()
    EffectFile(path).close()


def test_what_was_left_of_an_unfinished_making_is_made_anew(path: Path) -> None:
    """EF1: a file that never got its name is no file; it is made again, whole."""
    for name in ("effects.duckdb.new", "effects.duckdb.new.wal"):
        path.with_name(name).write_bytes(b"half")
    EffectFile(path).close()
    assert sorted(one.name for one in path.parent.iterdir() if one.suffix != ".lock") == ["effects.duckdb"]


def test_another_kind_of_file_is_left_as_it_is(path: Path) -> None:
    """A ledger, another database and a text are refused by name, and no byte of them changes."""
    duckdb.connect(str(path.with_name("other.duckdb"))).close()
    DuckDBLedger(path.with_name("lab.duckdb"), ledger_id="L").close()
    path.with_name("text.duckdb").write_bytes(b"some text\n")
    for name in ("other.duckdb", "lab.duckdb", "text.duckdb"):
        before = path.with_name(name).read_bytes()
        with pytest.raises(RefusedRequestError, match=name) as refused:
            EffectFile(path.with_name(name))
        assert str(path.parent) not in str(refused.value)
        assert path.with_name(name).read_bytes() == before


def test_there_must_be_a_folder(path: Path) -> None:
    """A place that is missing is said, not made."""
    with pytest.raises(LedgerNotFoundError):
        EffectFile(path.parent / "missing" / "effects.duckdb")


def test_a_folder_that_cannot_be_written_to_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses is one sentence of ours."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(LedgerError, match=r"cannot be opened for writing \(Permission denied\)"):
        EffectFile(path)
    monkeypatch.undo()
    EffectFile(path).close()


def test_all_of_it_or_nothing(path: Path) -> None:
    """EF2: what raises, an interrupt too, takes back everything since the file was held."""
    file = EffectFile(path)

    def write_and_be_interrupted() -> None:
        with file.held():
            file.write_effect(FIRST, "one line", action_id="a1")
            file.write_record(FIRST, {"effect": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_be_interrupted()
    with file.held():
        assert file.counts() == {"effects": 0, "records": 0, "collections": 0}
    file.close()


def test_the_database_itself_refuses_a_second_effect_or_record_under_one_id(path: Path) -> None:
    """EF3: the last line of defence; what went with it in the transaction is taken back."""
    file = EffectFile(path)
    with file.held():
        file.write_effect(FIRST, "one line", action_id="a1")
        file.write_record(FIRST, {"effect": 1})

    def write(*, effect: bool) -> None:
        with file.held():
            file.add_lease("c9", until_us=1)
            if effect:
                file.write_effect(FIRST, "another line", action_id="a2")
            else:
                file.write_record(FIRST, {"effect": 2})

    for effect in (True, False):
        with pytest.raises(LedgerFailedError) as failed:
            write(effect=effect)
        assert str(failed.value) == (
            "The effect service does not answer (ConstraintException); open it again, "
            "and ask once more under the same id."
        )
        assert not failed.value.definite
    with file.held():
        assert file.counts() == {"effects": 1, "records": 1, "collections": 0}
        assert file.clients() == ()
    file.close()


def test_the_file_is_never_rewritten(path: Path) -> None:
    """EF4: what is acknowledged stands in DuckDB's log; neither closing nor opening folds it in."""
    EffectFile(path).close()
    made = path.read_bytes()
    for number in range(1, 4):
        file = EffectFile(path)
        with file.held():
            file.write_effect(RequestId(client_id="c1", sequence=number), "a line", action_id=f"a{number}")
        file.close()
        assert path.read_bytes() == made
    file = EffectFile(path)
    with file.held():
        assert [receipt.n for receipt in file.receipts()] == [1, 2, 3]
    file.close()
    assert path.with_name(f"{path.name}.wal").stat().st_size > 0


def test_what_is_remembered_is_read_from_the_rows(path: Path) -> None:
    """Leases, results, marks and a collection, as another opening finds them."""
    file = EffectFile(path)
    known = Retained(lease_until_us=70, results={1: "one", 2: "two"})
    with file.held():
        file.add_lease("c1", until_us=50)
        file.add_lease("c2", until_us=60)
        file.add_lease("c1", until_us=70)
        for number, result in known.results.items():
            file.write_record(RequestId(client_id="c1", sequence=number), result)
        file.note("c1", known, known)
        assert file.counts()["collections"] == 0
        file.note("c1", known, Retained(lease_until_us=70, acknowledged=1, results={2: "two"}))
    file.close()
    file = EffectFile(path)
    with file.held():
        assert file.clients() == ("c1", "c2")
        now = file.retained("c1", in_progress={3})
        assert now == Retained(
            lease_until_us=70, acknowledged=1, results={2: "two"}, in_progress=frozenset({3})
        )
        file.note("c1", now, Retained(lease_until_us=70, acknowledged=2, collected=True))
        assert file.retained("c1", in_progress=set()) == Retained(
            lease_until_us=70, acknowledged=2, collected=True
        )
        assert file.retained("c9", in_progress=set()) == Retained()
        assert file.line(1) is None
    file.close()
