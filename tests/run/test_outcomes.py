"""Is what the adapter did, and what the world looked like, kept without one hiding the other?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from codeai_lab.records import ActionRequest, ActionStatus
from codeai_lab.run.outcomes import LONGEST_MESSAGE, Observation, attempt, look

REQUEST = ActionRequest(action_id="a", idempotency_key="k", capability="c", instruction="i")


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("this exception has no words")


class Handle:
    """Awaitable, with a close of its own that is none of our business."""

    closed = False

    def __await__(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        self.closed = True


def raise_(error: BaseException) -> Callable[[Any], Any]:
    def act(*_: Any) -> Any:
        raise error

    return act


@pytest.mark.parametrize("output", [None, {"a": [1, 2.5, True]}, "text", 0])
def test_what_is_returned_is_a_success_and_its_plain_output(output: Any) -> None:
    """The report is the output's plain form."""
    made = attempt(lambda _: output, REQUEST, caught=(Exception,))
    assert made.as_json() == {"status": "succeeded", "output": output, "error": None}


def test_the_adapter_is_entered_with_the_request_and_once() -> None:
    """One call, one argument."""
    seen: list[ActionRequest] = []
    attempt(seen.append, REQUEST, caught=(Exception,))
    assert seen == [REQUEST]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("connection lost"), "connection lost"),
        (RuntimeError(), ""),
        (ConnectionError("reset by peer"), "reset by peer"),
        (
            FileNotFoundError(2, "No such file or directory", "/" + "secret/place"),
            "No such file or directory",
        ),
        (OSError(5, {"odd": 1}), "{'odd': 1}"),
        (KeyError("k"), "'k'"),
        (ValueError("half \ud83d a pair"), "half ? a pair"),
        (ValueError(1, 2), "(1, 2)"),
        (ExceptionGroup("two", [ValueError("x"), KeyError("y")]), "two (2 sub-exceptions)"),
        (RuntimeError("x" * 10_000), "x" * LONGEST_MESSAGE),
        (MuteError(), "an exception that cannot be put into words"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_is_kept_by_its_type_and_its_words(error: Exception, message: str) -> None:
    """U4: type and words, in UTF-8, at most so long, without the path that the system put in."""
    made = attempt(raise_(error), REQUEST, caught=(Exception,))
    assert made.status is ActionStatus.FAILED
    assert made.error == {"code": "adapter-raised", "type": type(error).__name__, "message": message}
    assert made.output is None


def test_what_is_not_caught_escapes() -> None:
    """A rule set decides what is recorded as a failure; an interrupt never is."""
    with pytest.raises(ConnectionError):
        attempt(raise_(ConnectionError()), REQUEST, caught=(RuntimeError,))
    for interrupt in (KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError(), GeneratorExit()):
        with pytest.raises(type(interrupt)):
            attempt(raise_(interrupt), REQUEST, caught=(Exception,))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({1, 2}, "output: set is not a JSON value"),
        ({"a": float("nan")}, "output.a: NaN and infinities are not JSON numbers"),
        ([2**60], "output[0]: a number beyond 2^53 - 1 is not portable; write it as text"),
        ({1: "x"}, "output: a key is not text but int"),
        ("\ud800", "output: a lone surrogate is not text"),
        (object(), "output: object is not a JSON value"),
    ],
    ids=["set", "nan", "big", "key", "surrogate", "object"],
)
def test_an_output_without_a_form_does_not_undo_the_report(output: Any, message: str) -> None:
    """U2: the status stands and the output is named as refused."""
    made = attempt(lambda _: output, REQUEST, caught=(Exception,))
    assert made.as_json() == {
        "status": "succeeded",
        "output": None,
        "error": {"code": "output-not-recordable", "message": message},
    }


async def coroutine(_: Any = None) -> str:
    return "done"


def generator(_: Any = None) -> Iterator[int]:
    yield 1


async def async_generator(_: Any = None) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("execute", "kind"),
    [
        (coroutine, "coroutine"),
        (lambda _: coroutine(), "coroutine"),
        (generator, "generator"),
        (async_generator, "async_generator"),
        (lambda _: Handle(), "Handle"),
    ],
    ids=["async function", "returns a coroutine", "generator function", "async generator", "awaitable"],
)
def test_what_nothing_drives_is_no_report(execute: Callable[[Any], Any], kind: str) -> None:
    """U3: building the object is not doing the work; it fails, and no "never awaited" warning follows."""
    made = attempt(execute, REQUEST, caught=(Exception,))
    assert made.status is ActionStatus.FAILED
    assert made.error == {
        "code": "adapter-not-driven",
        "message": f"The adapter returned a {kind} that nothing drives; give it a plain function.",
    }


def test_a_thing_of_the_callers_is_not_closed() -> None:
    """U3: only coroutines and generators are closed; a generator that will not close hides nothing."""
    handle = Handle()
    attempt(lambda _: handle, REQUEST, caught=(Exception,))
    assert not handle.closed

    def stubborn() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise RuntimeError("will not close")

    under_way = stubborn()
    next(under_way)
    made = attempt(lambda _: under_way, REQUEST, caught=(Exception,))
    assert made.error is not None
    assert made.error["code"] == "adapter-not-driven"


@pytest.mark.parametrize(
    ("read", "observation"),
    [
        (lambda: "state-A", {"readable": True, "state": "state-A"}),
        (lambda: None, {"readable": True, "state": None}),
        (lambda: {"v": 1.0}, {"readable": True, "state": {"v": 1}}),
        (raise_(PermissionError(13, "denied", "x")), {"readable": False, "error": "PermissionError"}),
        (lambda: {1, 2}, {"readable": False, "error": "RefusedValueError"}),
        (lambda: coroutine(), {"readable": False, "error": "a coroutine that nothing drives"}),
        (lambda: generator(), {"readable": False, "error": "a generator that nothing drives"}),
        ("not callable", {"readable": False, "error": "TypeError"}),
    ],
)
def test_a_reading_or_the_fact_that_there_was_none(read: Any, observation: dict[str, Any]) -> None:
    """A reader that fails is itself a fact; `state` and `error` never stand together."""
    seen = look(read)
    assert seen is not None
    assert seen.as_json() == observation


def test_no_reader_is_not_a_failed_reader() -> None:
    """Where nobody can look, nothing is said."""
    assert look(None) is None
    assert look(lambda: "x") == Observation(readable=True, state="x")


def test_an_interrupt_of_the_reader_is_raised_again() -> None:
    """Only an Exception is a failed reading."""
    with pytest.raises(KeyboardInterrupt):
        look(raise_(KeyboardInterrupt()))
