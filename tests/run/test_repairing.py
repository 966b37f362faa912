"""Is a call repaired from the real errors, and given up with everything else kept?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import PolicyEngine
from codeai_lab.decide.repair import Limits, Problem, WayOn
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.run.film_tools import Fault, FilmTools, ToolTimeoutError
from codeai_lab.run.films import FILMS
from codeai_lab.run.repairing import RepairEnd, Resolution, Task, resolve
from codeai_lab.run.revisers import change_nothing_that_matters, mend_spelling, say_it_again
from codeai_lab.run.runtime import counted_ids
from codeai_lab.store.film_sql import FilmDatabase
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

NODE = "memory-film"
RIGHT = (
    "SELECT title FROM films JOIN themes USING (film_id) WHERE theme = 'memory loss' ORDER BY year LIMIT 1"
)


def bench_on(ledger: Ledger, *, ids: str = "e") -> Bench:
    return Bench(
        ledger=ledger,
        clock=ManualClock(tick_us=1),
        new_id=counted_ids(ids),
        policy=PolicyEngine(),
        rules="lab",
        run_id="r",
        actor_id="harness",
    )


@pytest.fixture(scope="module")
def films() -> Iterator[FilmDatabase]:
    """The shipped corpus in SQL."""
    with FilmDatabase(map(dataclasses.asdict, FILMS)) as database:
        yield database


@pytest.fixture
def sql_task(films: FilmDatabase) -> Callable[..., Task]:
    """Make the task of answering a query, with changes by name."""

    def make(query: str, **changes: Any) -> Task:
        usual: dict[str, Any] = {
            "node": NODE,
            "tool": "film_sql",
            "arguments": {"query": query},
            "call": lambda _, arguments: films.ask(arguments["query"]),
            "revise": mend_spelling,
        }
        return Task(**usual | changes)

    return make


class Script:
    """A tool that plays a list of answers, problems and errors, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        self.asked.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def task_of(script: Script, **changes: Any) -> Task:
    usual: dict[str, Any] = {
        "node": NODE,
        "tool": "t",
        "arguments": {"query": "q"},
        "call": script,
        "revise": change_nothing_that_matters,
    }
    return Task(**usual | changes)


def kinds(ledger: Ledger, stream: str = NODE) -> list[str]:
    return [event.kind for event in ledger.read(stream)]


def timeout() -> ToolTimeoutError:
    return ToolTimeoutError("t", "t did not answer in time.")


WRONG = Problem(kind="schema", message="no such column", hint="films(title)")


# --- real errors ---------------------------------------------------------------------------------------


def test_a_right_query_is_answered_at_the_first_attempt(
    ledger: Ledger, sql_task: Callable[..., Task]
) -> None:
    """RG4: one call, one event, and the answer says that nothing went wrong before."""
    done = resolve(bench_on(ledger), sql_task(RIGHT))
    assert (done.status, done.how) == (RepairEnd.ANSWERED, "first_attempt")
    assert done.answer == {"columns": ["title"], "rows": [["Random Harvest"]], "is_cut": False}
    assert kinds(ledger) == ["node.answered"]


@pytest.mark.parametrize(
    ("wrong", "problems"),
    [
        (RIGHT.replace("title", "titel"), ["schema"]),
        (RIGHT.replace("FROM films", "FROM filmz"), ["schema"]),
        (RIGHT.replace("SELECT", "SELCT"), ["syntax"]),
        (RIGHT.replace("SELECT title FROM films", "SELCT titel FROM filmz"), ["syntax", "schema", "schema"]),
    ],
)
def test_a_misspelt_query_is_repaired_from_the_error(
    ledger: Ledger, sql_task: Callable[..., Task], wrong: str, problems: list[str]
) -> None:
    """Each real error leads to one repair; the query ends right, and the record says what it took."""
    done = resolve(bench_on(ledger), sql_task(wrong))
    assert (done.status, done.how) == (RepairEnd.ANSWERED, "repaired")
    assert done.answer["rows"] == [["Random Harvest"]]
    repair = ["node.call_failed", "repair.attempted"]
    assert kinds(ledger) == [*repair * len(problems), "repair.succeeded", "node.answered"]
    failed = [event.payload for event in ledger.read(NODE) if event.kind == "node.call_failed"]
    assert [payload["problem"]["kind"] for payload in failed] == problems
    assert "film_id VARCHAR" in failed[-1]["problem"]["hint"] or problems == ["syntax"]


@EITHER
def test_three_failed_repairs_leave_the_node_unresolved_and_the_verified_branch_intact(
    ledger: Ledger, sql_task: Callable[..., Task]
) -> None:
    """RG2, RG3: four misspellings are one too many; the other branch is as it was, and there is a choice."""
    bench = bench_on(ledger)
    verified = EventDraft(
        event_id="v-1", run_id="r", stream_id="ai-film", kind="checkpoint.committed", actor_id="harness",
        idempotency_key=None, recorded_at_us=1, causation_id=None,
        payload={"node": "ai-film", "status": "verified", "source": "film:ex-machina"},
    )  # fmt: skip
    ledger.append(verified)
    before = ledger.read("ai-film")
    wrong = RIGHT.replace("SELECT title FROM films", "SELCT titel FROM filmz").replace("year", "yeer")
    done = resolve(bench, sql_task(wrong, other_routes=("lexical_search",), may_ask=True))
    assert (done.status, done.answer) == (RepairEnd.UNRESOLVED, None)
    assert done.ways == (WayOn.OTHER_ROUTE, WayOn.ASK, WayOn.REPORT_MISSING)
    assert kinds(ledger) == [
        *["node.call_failed", "repair.attempted"] * 3,
        "node.call_failed",
        "node.unresolved",
    ]
    assert ledger.read("ai-film") == before
    assert {event.stream_id for event in ledger.read_all()} == {"ai-film", NODE}
    unresolved = ledger.read(NODE)[-1].payload
    assert unresolved["reason"] == "all repairs are spent: 3 of 3"
    assert unresolved["ways_on"] == ["other_route", "ask", "report_missing"]
    assert "yeer" in unresolved["problem"]["message"]


def test_a_model_that_changes_nothing_that_matters_never_gets_there(
    ledger: Ledger, sql_task: Callable[..., Task]
) -> None:
    """RG2: other calls that fail for the same reason spend the repairs one by one."""
    done = resolve(bench_on(ledger), sql_task("SELECT titel FROM films", revise=change_nothing_that_matters))
    assert (done.status, done.ways) == (RepairEnd.UNRESOLVED, (WayOn.REPORT_MISSING,))
    assert kinds(ledger).count("node.call_failed") == 4
    assert kinds(ledger).count("repair.attempted") == 3


# --- the bound, and what may not be done ---------------------------------------------------------------


def test_the_same_arguments_are_refused_and_not_called_again(memory: MemoryLedger) -> None:
    """RG1: a model that says it again is refused three times with the reason, and the tool is asked once."""
    script = Script(WRONG)
    done = resolve(bench_on(memory), task_of(script, revise=say_it_again))
    assert done.status is RepairEnd.UNRESOLVED
    assert len(script.asked) == 1
    assert kinds(memory) == ["node.call_failed", *["repair.refused"] * 3, "node.unresolved"]
    refused = memory.read(NODE)[1].payload
    assert "same arguments failed by its input" in refused["refused_because"]
    assert refused["call"] == memory.read(NODE)[0].payload["call"]


def test_going_back_to_an_earlier_wrong_call_is_refused(memory: MemoryLedger) -> None:
    """RG1: not only the newest call but every one that failed by its input is kept in mind."""
    proposals = iter(["b", "q", "c"])
    script = Script(WRONG, WRONG, "found")
    task = task_of(script, revise=lambda arguments, problem: {"query": next(proposals)})
    done = resolve(bench_on(memory), task)
    assert (done.answer, done.how) == ("found", "repaired")
    assert [asked["query"] for asked in script.asked] == ["q", "b", "c"]
    assert kinds(memory).count("repair.refused") == 1


@pytest.mark.parametrize(
    ("timeouts", "ends"), [(1, RepairEnd.ANSWERED), (2, RepairEnd.ANSWERED), (3, RepairEnd.UNRESOLVED)]
)
def test_a_timeout_is_retried_with_the_same_call_within_its_limit(
    memory: MemoryLedger, timeouts: int, ends: RepairEnd
) -> None:
    """RG2, RG4: two retries by default, the arguments unchanged, and nobody is asked to revise them."""

    def never(arguments: Mapping[str, Any], problem: Problem) -> Mapping[str, Any]:
        raise AssertionError("a timeout is no reason to change the call")

    script = Script(*(timeout() for _ in range(timeouts)), "found")
    done = resolve(bench_on(memory), task_of(script, revise=never))
    assert done.status is ends
    assert done.how == ("retried" if ends is RepairEnd.ANSWERED else None)
    assert script.asked == [{"query": "q"}] * min(timeouts + 1, 3)


def test_a_timeout_of_a_repair_does_not_spend_a_repair(memory: MemoryLedger) -> None:
    """The two bounds are apart: the repaired call is retried, and repairs are left after it."""
    script = Script(WRONG, timeout(), WRONG, WRONG, "found")
    assert resolve(bench_on(memory), task_of(script)).answer == "found"


def test_a_contradiction_reopens_discovery_and_the_count_goes_on(memory: MemoryLedger) -> None:
    """A record that denies its candidate ends the loop; a second candidate may be tried, a third may not."""

    def denies(answer: Any) -> str | None:
        return None if answer == "fits" else "another plot"

    script = Script("x", "x")
    bench = bench_on(memory)
    first = resolve(bench, task_of(script, contradicts=denies))
    assert (first.status, first.reason is not None) == (RepairEnd.REOPENED, True)
    assert kinds(memory) == ["node.call_failed", "discovery.reopened"]
    again = resolve(bench, task_of(script, arguments={"query": "other"}, contradicts=denies))
    assert again.status is RepairEnd.UNRESOLVED
    assert [asked["query"] for asked in script.asked] == ["q", "other"]


def test_a_second_candidate_that_fits_is_told_from_a_first_attempt(memory: MemoryLedger) -> None:
    """RG4: an answer after a reopening says so."""
    script = Script("x", "fits")
    task = task_of(script, contradicts=lambda answer: None if answer == "fits" else "another plot")
    resolve(bench_on(memory), task)
    assert resolve(bench_on(memory, ids="f"), task).how == "reopened"


def test_a_reopened_node_is_not_begun_with_a_call_that_failed_by_its_input(memory: MemoryLedger) -> None:
    """RG1: reopening does not make a wrong call right."""
    script = Script(WRONG, "x")
    denied = task_of(script, contradicts=lambda _: "another plot")
    assert resolve(bench_on(memory), denied).status is RepairEnd.REOPENED
    with pytest.raises(RefusedRequestError, match="change it before it is made again"):
        resolve(bench_on(memory, ids="f"), denied)
    assert len(script.asked) == 2


def test_no_run_makes_more_calls_than_the_limit_says(memory: MemoryLedger) -> None:
    """RG2: the worst order of failures comes to `most_calls` calls, over the reopening."""
    limits = Limits(retries=2, repairs=3, reopenings=1)
    script = Script(timeout(), WRONG, timeout(), WRONG, "x", WRONG, WRONG, "never asked")
    task = task_of(script, limits=limits, contradicts=lambda _: "another plot")
    bench = bench_on(memory)
    assert resolve(bench, task).status is RepairEnd.REOPENED
    assert resolve(bench, dataclasses.replace(task, arguments={"query": "other"})).reason == (
        "all repairs are spent: 3 of 3"
    )
    assert script.answers == ["never asked"]
    assert len(script.asked) == limits.most_calls == 7


# --- the record ----------------------------------------------------------------------------------------


def test_a_node_that_ended_is_not_called_again(ledger: Ledger, sql_task: Callable[..., Task]) -> None:
    """RG2: whoever asks again, in another process too, is told what is recorded."""
    first = resolve(bench_on(ledger), sql_task(RIGHT.replace("title", "titel")))
    seen = kinds(ledger)
    silent = Script()
    assert resolve(bench_on(ledger, ids="f"), sql_task(RIGHT, call=silent)) == first
    assert (silent.asked, kinds(ledger)) == ([], seen)


@pytest.mark.parametrize("answers", [
    (timeout, lambda: WRONG, timeout, lambda: WRONG, lambda: "found"),
    (lambda: WRONG, lambda: WRONG, lambda: WRONG, lambda: WRONG),
])  # fmt: skip
def test_a_loop_that_is_cut_anywhere_goes_on_where_it_was(answers: Sequence[Callable[[], Any]]) -> None:
    """RG2: cut after any event, another process ends with the same history and one call repeated at most."""
    whole = MemoryLedger()
    script = Script(*(make() for make in answers))
    done = resolve(bench_on(whole), task_of(script))
    for cut in range(1, len(kinds(whole)) + 1):
        rest = MemoryLedger()
        rest.restore(whole.snapshot()[:cut])
        if kinds(rest)[-1] == "repair.succeeded":
            continue  # it is recorded in one append with the end
        calls_made = kinds(rest).count("node.call_failed")
        going_on = Script(*(make() for make in answers[calls_made:]))
        assert resolve(bench_on(rest, ids="f"), task_of(going_on)) == done
        assert kinds(rest) == kinds(whole)
        if cut < len(kinds(whole)):
            assert len(going_on.asked) + calls_made <= len(script.asked)


def test_every_event_names_its_cause(memory: MemoryLedger) -> None:
    """The history of a node is one chain, and every event names the node."""
    resolve(bench_on(memory), task_of(Script(WRONG, timeout(), "found")))
    events = memory.read(NODE)
    assert [event.causation_id for event in events] == [None, *(event.event_id for event in events[:-1])]
    assert {event.payload["node"] for event in events} == {NODE}


def test_a_second_worker_on_the_node_ends_the_first_ones_loop(memory: MemoryLedger) -> None:
    """RG3: an event that somebody else put into the stream is never written past."""
    other = bench_on(memory, ids="o")

    def meanwhile(tool: str, arguments: Mapping[str, Any]) -> Any:
        resolve(other, task_of(Script("theirs")))
        return "ours"

    with pytest.raises(RefusedRequestError, match="Somebody else works on this node"):
        resolve(bench_on(memory), task_of(Script(), call=meanwhile))
    assert kinds(memory) == ["node.answered"]
    assert memory.read(NODE)[0].payload["answer"] == "theirs"


def test_what_is_no_tool_error_ends_the_loop_and_is_not_counted(memory: MemoryLedger) -> None:
    """An error of the program is raised as it is; nothing about the node is recorded."""
    with pytest.raises(ZeroDivisionError):
        resolve(bench_on(memory), task_of(Script(ZeroDivisionError())))
    assert kinds(memory) == []


# --- the film tools in the loop ------------------------------------------------------------------------


def test_a_film_search_with_an_unknown_field_is_repaired(memory: MemoryLedger) -> None:
    """An invalid field name of a film tool is an input error like a misspelt column."""

    def drop_the_field(arguments: Mapping[str, Any], problem: Problem) -> Mapping[str, Any]:
        assert "no field 'limt'" in problem.message
        return {"query": arguments["query"]}

    done = resolve(
        bench_on(memory),
        Task(
            node=NODE,
            tool="vector_search",
            arguments={"query": "an artificial mind", "limt": 1},
            call=FilmTools().call,
            revise=drop_the_field,
        ),
    )
    assert (done.how, done.answer[0]["film_id"]) == ("repaired", "ex-machina")


def test_a_contradicting_record_is_seen_and_given_back(memory: MemoryLedger) -> None:
    """A record with another film's plot under the right id does not pass, and the next one does."""
    tools = FilmTools(faults=(Fault(tool="get_film", nth=1, kind="contradiction"),))

    def denies(record: Any) -> str | None:
        return None if "memory loss" in record["themes"] else "the plot is not about memory loss"

    def asked(ids: str) -> Resolution:
        return resolve(
            bench_on(memory, ids=ids),
            Task(
                node=NODE,
                tool="get_film",
                arguments={"film_id": "memento"},
                call=tools.call,
                revise=say_it_again,
                contradicts=denies,
            ),
        )

    assert asked("e").status is RepairEnd.REOPENED
    assert asked("f").answer["source_id"] == "film:memento"
