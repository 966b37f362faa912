"""Long experiments in parts: kept, stopped, gone on with, and run by any executor."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.explore.sweeps import Part, sweep

CALLED: list[int] = []


def squared(number: int) -> dict[str, int]:
    CALLED.append(number)
    return {"square": number * number}


def failing(number: int) -> int:
    if number == 3:
        raise KeyboardInterrupt
    return squared(number)["square"]


def parts_of(count: int, task: Any = squared) -> list[Part]:
    return [Part(name=f"part {n}", task=task, arguments={"number": n}) for n in range(count)]


class LastFirst(Executor):
    """Ends what it was given in the opposite order, only once somebody waits."""

    def __init__(self) -> None:
        self.most = self._open = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._open += 1
        self.most = max(self.most, self._open)
        future.set_result(fn(*args, **kwargs))
        future.add_done_callback(lambda _: None)
        return future


@pytest.fixture(autouse=True)
def _nothing_called() -> None:
    CALLED.clear()


def test_answers_come_in_the_order_of_the_parts() -> None:
    """Whoever runs the parts, their answers are given in order, and are the same."""
    expected = [{"square": n * n} for n in range(9)]
    with ThreadPoolExecutor(4) as threads:
        assert list(sweep(parts_of(9), executor=threads)) == expected
    assert list(sweep(parts_of(9), executor=LastFirst(), window=3)) == expected
    assert list(sweep(parts_of(1))) == expected[:1]


def test_no_more_than_the_window_is_handed_out() -> None:
    """However many parts there are, only so many are handed out before an answer is taken."""
    with ThreadPoolExecutor(1) as threads:
        answers = sweep(parts_of(1_000), executor=threads, window=5)
        assert next(answers) == {"square": 0}
        assert len(CALLED) <= 10
        answers.close()


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What was answered before an interrupt is kept, and only the rest is run when it starts again."""
    keep = tmp_path / "answers.jsonl"
    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyboardInterrupt):
            list(sweep(parts_of(6, failing), executor=threads, keep=keep, window=1))
        assert CALLED == [0, 1, 2]
        parts = parts_of(6)
        assert list(sweep(parts, executor=threads, keep=keep)) == [{"square": n * n} for n in range(6)]
        CALLED.clear()
        assert list(sweep(parts, executor=threads, keep=keep)) == [{"square": n * n} for n in range(6)]
        assert CALLED == []


def test_a_kept_answer_belongs_to_one_part(tmp_path: Path) -> None:
    """Another name, function or argument is another part, and is run."""
    keep = tmp_path / "answers.jsonl"
    list(sweep(parts_of(1), keep=keep))
    list(sweep([Part(name="another", task=squared, arguments={"number": 0})], keep=keep))
    list(sweep([Part(name="part 0", task=squared, arguments={"number": 7})], keep=keep))
    assert CALLED == [0, 0, 7]
    list(sweep(parts_of(1), keep=keep))
    assert CALLED == [0, 0, 7]


def test_a_torn_last_line_is_run_again(tmp_path: Path) -> None:
    """A kill in the middle of writing an answer costs that answer and no other."""
    keep = tmp_path / "answers.jsonl"
    list(sweep(parts_of(3), executor=LastFirst(), keep=keep))
    whole = keep.read_bytes()
    keep.write_bytes(whole[:-5])
    CALLED.clear()
    assert list(sweep(parts_of(3), executor=LastFirst(), keep=keep))[2] == {"square": 4}
    assert CALLED == [2]
    assert keep.read_bytes() == whole


@pytest.mark.parametrize("text", ["dear diary\n", "dear diary", '{"part": 1}\n', "[]\n"])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    """A file that holds no answers is refused by its name, in one sentence, and left as it was."""
    keep = tmp_path / "notes.txt"
    keep.write_text(text)
    with pytest.raises(RefusedRequestError, match=r"^The file notes\.txt does not hold the answers"):
        list(sweep(parts_of(2), keep=keep))
    assert keep.read_text() == text


def test_a_kept_answer_has_the_form_of_its_part(tmp_path: Path) -> None:
    """Where a part knows the form of its answer, a kept one of another form is refused; nothing is run."""
    keep = tmp_path / "answers.jsonl"
    first, second = parts_of(2)
    text = f'{{"answer":5,"part":"{second.identity}"}}\n'
    keep.write_text(text)
    known = replace(second, check=lambda answer: isinstance(answer, dict))
    with pytest.raises(RefusedRequestError, match=r"^The file answers\.jsonl does not hold the answers"):
        list(sweep([first, known], keep=keep, executor=LastFirst()))
    assert (CALLED, keep.read_text()) == ([], text)
    assert list(sweep([first, second], keep=keep, executor=LastFirst())) == [{"square": 0}, 5]


@pytest.mark.parametrize("name", ["folder", "missing/answers.jsonl", "file/answers.jsonl"])
def test_a_place_where_nothing_can_be_kept_is_refused(tmp_path: Path, name: str) -> None:
    """A folder, or a folder that is not there, is refused in one sentence before any part runs."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    keep = tmp_path / name
    with pytest.raises(RefusedRequestError, match=rf"^Answers cannot be kept in {keep.name} \(.*\); name a"):
        list(sweep(parts_of(2), keep=keep, executor=LastFirst()))
    assert CALLED == []


def test_progress_says_what_ended() -> None:
    """The one who watches is told the part that ended, how many are done, and of how many."""
    told: list[tuple[str, int, int]] = []
    list(sweep(parts_of(2), executor=LastFirst(), progress=lambda *said: told.append(said)))
    assert told == [("starting", 0, 2), ("part 0", 1, 2), ("part 1", 2, 2)]


def test_an_answer_is_plain_json() -> None:
    """An answer without a JSON form is refused, since it could not be kept."""
    with pytest.raises(RefusedValueError):
        list(sweep([Part(name="sets", task=set)]))
