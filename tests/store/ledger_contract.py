"""What every ledger must do, whatever it is made of: S1 to S4 of `store.protocol`, and the rules of payloads.

A test class of a ledger inherits `LedgerContract` and gives the fixtures: `ledger`, an empty one; `fresh`,
which makes one; `untouched`, one for all cases that record nothing; and `reopened`, which gives a ledger as
the next process finds it.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeai_lab.errors import RefusedValueError
from codeai_lab.records import EventDraft
from codeai_lab.store.protocol import Ledger, Unchanged

Reopened = Callable[[Ledger], Ledger]


def draft(
    event_id: str, *, key: str | None = "k", stream: str = "s", payload: Any = None, **given: Any
) -> EventDraft:
    """Make a draft of which only the interesting part has to be named."""
    fields: dict[str, Any] = {
        "run_id": "lesson/A",
        "kind": "action.requested",
        "actor_id": "tester",
        "recorded_at_us": 1,
        "causation_id": None,
    }
    body = {} if payload is None else payload
    return EventDraft(
        event_id=event_id, stream_id=stream, idempotency_key=key, payload=body, **(fields | given)
    )


def ids(events: Iterable[Any]) -> list[str]:
    return [event.event_id for event in events]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)

# What is handed in, and the place that the refusal names.
REFUSED = [
    pytest.param({"x": float("nan")}, "payload.x", id="nan"),
    pytest.param({"x": float("inf")}, "payload.x", id="infinity"),
    pytest.param({"x": [0, -float("inf")]}, "payload.x[1]", id="minus infinity"),
    pytest.param({"x": 2**53}, "payload.x", id="2^53"),
    pytest.param({"x": {"y": -(2**53)}}, "payload.x.y", id="-2^53"),
    pytest.param({"x": 1e300}, "payload.x", id="large float"),
    pytest.param({"x": {1}}, "payload.x", id="set"),
    pytest.param({"x": frozenset()}, "payload.x", id="frozenset"),
    pytest.param({"x": b"bytes"}, "payload.x", id="bytes"),
    pytest.param({"x": bytearray(b"b")}, "payload.x", id="bytearray"),
    pytest.param({"x": datetime.date(2026, 11, 30)}, "payload.x", id="date"),
    pytest.param({"x": decimal.Decimal(1)}, "payload.x", id="decimal"),
    pytest.param({"x": 1j}, "payload.x", id="complex"),
    pytest.param({"x": object()}, "payload.x", id="object"),
    pytest.param({"x": {1: "y"}}, "payload.x", id="number as key"),
    pytest.param({None: "y"}, "payload", id="null as key"),
    pytest.param({"x": {("a",): 1}}, "payload.x", id="tuple as key"),
    pytest.param({"x": "\ud800"}, "payload.x", id="lone surrogate"),
    pytest.param({"x": {"\udfff": 1}}, "payload.x (a key)", id="lone surrogate in a key"),
    pytest.param({"x": nested(101)}, "payload.x", id="101 levels"),
    pytest.param({"x": HOLDS_ITSELF}, "payload.x", id="holds itself"),
    pytest.param({"x": "a" * 10_000_000}, "payload", id="10 MB"),
    pytest.param([1], "payload", id="a list as payload"),
    pytest.param("text", "payload", id="text as payload"),
    pytest.param(7, "payload", id="number as payload"),
]

# What is handed in, and what is read back, of the very same types.
ACCEPTED = {
    "empty": ({}, {}),
    "tuples": ({"x": (1, 2, (3,))}, {"x": [1, 2, [3]]}),
    "whole floats": ({"x": 1.0, "y": -0.0, "z": 2.5}, {"x": 1, "y": 0, "z": 2.5}),
    "largest integers": ({"x": 2**53 - 1, "y": 1 - 2**53}, {"x": 2**53 - 1, "y": 1 - 2**53}),
    "small floats": ({"x": 1e-7, "y": 5e-324, "z": 0.1}, {"x": 1e-7, "y": 5e-324, "z": 0.1}),
    "true is not one": ({"x": True, "y": 1, "z": None}, {"x": True, "y": 1, "z": None}),
    "control characters": ({"x": '\0\x1f\n"\\/'}, {"x": '\0\x1f\n"\\/'}),
    "unicode": ({"é": "日本 😀\u2028\ufffe"}, {"é": "日本 😀\u2028\ufffe"}),
    "keys that sort apart in utf-16": ({"\ue000": 1, "😀": 2}, {"\ue000": 1, "😀": 2}),
    "deep": ({"x": nested(98)}, {"x": nested(98)}),
    "nearly a megabyte": ({"x": "a" * 900_000}, {"x": "a" * 900_000}),
}

NAMES = ["", "\0", "a\0b", "' OR 1=1 --", "日本😀", "\\", "a\nb", "%_*?[", " ", "é", "e\u0301", "x" * 5000]

# A field of the event, a value that it does not take.
REFUSED_FIELDS = [
    ("event_id", 5),
    ("event_id", None),
    ("run_id", b"r"),
    ("stream_id", ["s"]),
    ("stream_id", "\ud800"),
    ("kind", None),
    ("actor_id", 1.5),
    ("idempotency_key", 7),
    ("causation_id", ("e",)),
    ("recorded_at_us", 1.0),
    ("recorded_at_us", True),
    ("recorded_at_us", "1"),
    ("recorded_at_us", 2**53),
]

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.floats(-(2**53) + 1, 2**53 - 1, allow_nan=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


class LedgerContract:
    """The cases; a subclass gives the fixtures."""

    # --- S1: together or not at all

    def test_events_of_one_append_have_adjacent_seqs(self, ledger: Ledger) -> None:
        """S1: seqs count from 1 without gaps, within an append and from one to the next."""
        first = ledger.append(draft("a"))
        rest = ledger.append(draft("b"), draft("c"))
        assert [event.seq for event in (*first, *rest)] == [1, 2, 3]
        assert list(ledger.read_all()) == [*first, *rest]

    def test_one_refused_event_refuses_its_whole_append(self, ledger: Ledger) -> None:
        """S1: a batch with one event that cannot be recorded leaves nothing, and uses up no seq."""
        for place in range(3):
            batch = [draft("a"), draft("b")]
            batch.insert(place, draft("bad", payload={"x": float("nan")}))
            with pytest.raises(RefusedValueError):
                ledger.append(*batch)
            assert list(ledger.read_all()) == []
        assert ledger.append(draft("a"))[0].seq == 1

    def test_an_append_of_nothing_is_a_mistake(self, ledger: Ledger) -> None:
        """S1: an append records at least one event."""
        with pytest.raises(ValueError, match="at least one event"):
            ledger.append()

    def test_history_is_given_in_order(self, ledger: Ledger, reopened: Reopened) -> None:
        """S1: a stream and a key each give their own events in order of seq, live and reopened."""
        ledger.append(draft("a", key="k1", stream="s1"))
        ledger.append(draft("b", key="k2", stream="s1"), draft("c", key="k1", stream="s2"))
        ledger = reopened(ledger)
        ledger.append(draft("d", key="k1", stream="s1"), draft("e", key=None, stream="s2"))
        for again in live_and_reopened(ledger, reopened):
            assert ids(again.read("s1")) == ["a", "b", "d"]
            assert ids(again.read("s2")) == ["c", "e"]
            assert ids(again.find("k1")) == ["a", "c", "d"]
            assert ids(again.find("k2")) == ["b"]
            assert again.read("k1") == again.find("s1") == ()

    def test_the_ledger_keeps_its_name(self, ledger: Ledger, reopened: Reopened) -> None:
        """S1: a ledger's id is the same as long as the ledger lives."""
        name = ledger.ledger_id
        assert name
        assert reopened(ledger).ledger_id == name

    # --- S2: only if nothing has come since

    @pytest.mark.parametrize("by", ["key", "stream"])
    def test_a_condition_that_holds_lets_the_append_through(self, ledger: Ledger, by: str) -> None:
        """S2: with the newest seq named right, also 0 for none, the events are recorded."""
        name = {"key": "k", "stream": "s"}[by]
        assert ledger.append(draft("a"), unless_changed=[Unchanged(last_seq=0, **{by: name})])
        assert ledger.append(draft("b"), unless_changed=[Unchanged(last_seq=1, **{by: name})])

    def test_a_condition_that_fails_records_nothing(self, ledger: Ledger, reopened: Reopened) -> None:
        """S2: a key or stream that moved, before or since the opening, gives () and leaves no event."""
        ledger.append(draft("a"))
        ledger.append(draft("b"))
        for again in live_and_reopened(ledger, reopened):
            for subject, seen in itertools.product(({"key": "k"}, {"stream": "s"}), (0, 1, 3)):
                moved = Unchanged(last_seq=seen, **subject)
                assert again.append(draft("c"), draft("d", key="other"), unless_changed=[moved]) == ()
                assert ids(again.read_all()) == ["a", "b"]

    def test_all_conditions_must_hold(self, ledger: Ledger) -> None:
        """S2: one condition that fails among several fails the append."""
        ledger.append(draft("a", key="k1"))
        holds, fails = Unchanged(key="k1", last_seq=1), Unchanged(key="k2", last_seq=1)
        assert ledger.append(draft("b"), unless_changed=[holds, fails]) == ()
        assert ledger.append(draft("b"), unless_changed=[fails, holds]) == ()
        assert ledger.append(draft("b"), unless_changed=[holds, holds])

    def test_only_its_own_events_move_a_key(self, ledger: Ledger) -> None:
        """S2: events of other keys, or of the same stream without the key, move nothing; a name is no key."""
        ledger.append(draft("a", key="k1", stream="k2"))
        ledger.append(draft("b", key=None, stream="k1"))
        assert ledger.append(draft("c"), unless_changed=[Unchanged(key="k1", last_seq=1)])
        assert ledger.append(draft("d"), unless_changed=[Unchanged(key="k2", last_seq=0)])

    def test_a_condition_names_one_subject(self) -> None:
        """S2: a condition is about one key or one stream."""
        for named in ({}, {"key": "k", "stream": "s"}):
            with pytest.raises(ValueError, match="a key or a stream"):
                Unchanged(last_seq=0, **named)

    # --- S3: an id once

    def test_an_event_id_is_recorded_once(self, ledger: Ledger, reopened: Reopened) -> None:
        """S3: an id that is there, from this append, this session or an earlier one, is refused."""
        with pytest.raises(RefusedValueError, match="event_id"):
            ledger.append(draft("a"), draft("a"))
        ledger.append(draft("a"))
        for again in live_and_reopened(ledger, reopened):
            with pytest.raises(RefusedValueError, match="event_id"):
                again.append(draft("b", key="other", stream="other"), draft("a", key="other", stream="other"))
            assert ids(again.read_all()) == ["a"]

    # --- S4: what is recorded stays

    def test_the_callers_own_objects_are_copied(self, ledger: Ledger, reopened: Reopened) -> None:
        """S4: changing a draft's payload after it was appended changes nothing that is recorded."""
        payload = {"list": [1]}
        appended = draft("a", payload=payload)
        ledger.append(appended)
        payload["list"].append(2)
        payload["more"] = []
        for again in live_and_reopened(ledger, reopened):
            assert [event.payload for event in (*again.find("k"), *again.read("s"), *again.read_all())] == [
                {"list": [1]}
            ] * 3

    # --- payloads

    @pytest.mark.parametrize(("payload", "where"), REFUSED)
    def test_a_value_without_a_json_form_is_refused_by_its_place(
        self, untouched: Ledger, payload: Any, where: str
    ) -> None:
        """Payload rule: what has no single JSON form is refused, naming where; nothing is recorded."""
        with pytest.raises(RefusedValueError) as refused:
            untouched.append(draft("a"), draft("b", payload=payload))
        assert refused.value.definite
        assert refused.value.where.startswith(where)
        assert len(str(refused.value)) < 300
        assert list(untouched.read_all()) == []

    @pytest.mark.parametrize(("field", "value"), REFUSED_FIELDS)
    def test_a_field_of_the_wrong_type_is_refused_by_its_name(
        self, untouched: Ledger, field: str, value: Any
    ) -> None:
        """Payload rule: names are text, an instant is a whole number; anything else is refused by name."""
        given: dict[str, Any] = {"event_id": "a", "stream_id": "s", "idempotency_key": "k", "payload": {}}
        given |= {"run_id": "r", "kind": "k", "actor_id": "t", "recorded_at_us": 1, "causation_id": None}
        with pytest.raises(RefusedValueError) as refused:
            untouched.append(EventDraft(**(given | {field: value})))
        assert refused.value.where == field
        assert list(untouched.read_all()) == []

    def test_live_and_reopened_forms_agree(self, ledger: Ledger, reopened: Reopened) -> None:
        """Payload rule: what is accepted reads the same, types too, appended, found and reopened."""
        appended = ledger.append(*(draft(name, payload=payload) for name, (payload, _) in ACCEPTED.items()))
        for again in live_and_reopened(ledger, reopened):
            for events in (appended, tuple(again.read_all()), again.read("s"), again.find("k")):
                for (name, (_, read_back)), event in zip(ACCEPTED.items(), events, strict=True):
                    assert same(event.payload, read_back), name

    def test_any_text_is_a_name(self, ledger: Ledger, reopened: Reopened) -> None:
        """Payload rule: any text may be a key, a stream or an id, and is found by exactly that text."""
        for name in NAMES:
            ledger.append(draft(f"id {name}", key=name, stream=name, causation_id=name))
        for again in live_and_reopened(ledger, reopened):
            for name in NAMES:
                assert ids(again.find(name)) == ids(again.read(name)) == [f"id {name}"]
                assert again.find(name)[0].causation_id == name
            assert again.find("\ud800") == again.read("\ud800") == ()  # no text at all

    @settings(
        max_examples=3,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(payloads=st.lists(st.dictionaries(names, values, max_size=4), min_size=20, max_size=60))
    def test_any_json_object_is_a_payload(
        self, fresh: Callable[[], Ledger], reopened: Reopened, payloads: list[dict[str, Any]]
    ) -> None:
        """Payload rule: every JSON object within the rules is accepted and reads the same after reopening."""
        ledger = fresh()
        live = [ledger.append(draft(str(n), payload=payload))[0] for n, payload in enumerate(payloads)]
        ledger = reopened(ledger)
        again = list(ledger.read_all())
        assert all(same(one.payload, other.payload) for one, other in zip(live, again, strict=True))
        assert [event.event_id for event in ledger.find("k")] == [event.event_id for event in live]

    # --- threads

    def test_threads_lose_and_double_nothing(self, ledger: Ledger, reopened: Reopened) -> None:
        """S1 under threads: 16 of them leave every event once, seqs without gaps, batches together."""

        def work(thread: int) -> None:
            for turn in range(12):
                name = f"{thread}/{turn}"
                ledger.append(*(draft(f"{name}/{n}", stream=name) for n in range(turn % 3 + 1)))

        in_threads(16, work)
        for again in live_and_reopened(ledger, reopened):
            events = list(again.read_all())
            assert [event.seq for event in events] == list(range(1, 16 * 24 + 1))
            assert len(set(ids(events))) == len(events)
            batches = [
                [event.seq for event in events if event.stream_id == name]
                for name in {event.stream_id for event in events}
            ]
            assert all(seqs == list(range(seqs[0], seqs[0] + len(seqs))) for seqs in batches)

    def test_of_racing_threads_one_wins_each_key(self, ledger: Ledger) -> None:
        """S2 under threads: of eight that saw the same key unchanged, exactly one records."""
        keys = [f"k{n}" for n in range(25)]
        start, won = threading.Barrier(8), []

        def work(thread: int) -> None:
            for key in keys:
                seen = ledger.find(key)[-1].seq if ledger.find(key) else 0
                start.wait(timeout=30)
                if ledger.append(
                    draft(f"{key}/{thread}", key=key), unless_changed=[Unchanged(key=key, last_seq=seen)]
                ):
                    won.append(key)

        in_threads(8, work)
        assert sorted(won) == sorted(keys)
        assert len(list(ledger.read_all())) == len(keys)


def live_and_reopened(ledger: Ledger, reopened: Reopened) -> Iterator[Ledger]:
    """Give the ledger as it is, then as its next process finds it."""
    yield ledger
    yield reopened(ledger)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in threads and pass on what went wrong in any of them."""
    wrong: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # passed on below
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not wrong, wrong


def same(one: Any, other: Any) -> bool:
    """Say whether two JSON values are the same, types too: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
