"""Does it make no difference to a verdict in how many pieces a bundle is read, nor how long it is?"""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.lessons.film_recovery import freeze_film_recovery
from codeai_lab.prove import bundle, verify
from codeai_lab.prove.corrupt import KINDS

Good = Callable[..., Path]
DENIED = {"status": "denied", "error": {"code": "not-authorised", "message": "no grant permits it"}}
DONE = {"status": "succeeded", "output": None}


def codes(folder: Path) -> list[str]:
    return sorted({finding.code for finding in verify.verify(folder).findings})


# --- a document


def whole(text: bytes) -> Any:
    """Give the value that a document has, or the code of why it has none."""
    try:
        value = verify._parse(verify._text(text))
    except verify._Refused as refused:
        return refused.code
    return value if isinstance(value, dict) else "not an object"


def in_pieces(text: bytes, due: Any) -> Any:
    """Give the same, read like a document whose lists should be `due`."""
    try:
        pieces = verify._Pieces(io.BytesIO(text))
        if pieces.next() != "{":
            pieces.value()
            pieces.end()
            return "not an object"
        value = pieces.row(lambda _, __: due if due is None else verify._Column(lambda: due))
        pieces.end()
    except verify._Refused as refused:
        return refused.code
    return plain(value)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [*value] if isinstance(value, verify._Long) else value


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_ITEMS = st.recursive(
    _SCALARS | st.text('a,]}{["\\ é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab,]}"), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text("abc"), st.lists(_ITEMS, max_size=9) | _ITEMS, max_size=4),
    st.integers(1, 40),
    st.sampled_from([None, 1, "\t"]),
    st.lists(st.none() | st.text("ab,", max_size=2) | st.just({"a": "b"}), max_size=4),
)
@example({"": [0.0, -1.5e300, 2e-7]}, 1, None, [])
def test_a_document_in_pieces_is_the_document(
    value: dict[str, Any], block: int, indent: Any, due: list[Any]
) -> None:
    """Whatever the block, the layout and what a list should be: the value that is read is the one written."""
    text = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "BLOCK", block)
        found = [in_pieces(text, due), in_pieces(text, None), whole(text), value]
    assert [json.dumps(one) for one in found] == [json.dumps(value)] * 4  # true is not 1


@given(
    st.text('{}[]",:ab1.e- \n\\u0n', max_size=24) | st.text('[]",1 ', max_size=12).map('{{"a":{}}}'.format),
    st.integers(1, 9),
)
@example('{"a":[1,2,]}', 3)
@example('{"a":[,1]}', 1)
@example('{"a":[1 2]}', 2)
@example('{"a":1,}', 1)
@example('{"a":1,"a":2}', 2)
@example('{"a":[{"b":1,"b":2},{}]}', 4)
@example('{"a":[{"b" :1,"b" :"\\":"},{}]}', 90)
@example('{"a":[{"b":1,"\\u0062":2},{}]}', 90)
@example('{"a":[[{"b":1,"b":2}],{}]}', 90)
@example('{"a":[1,NaN,2]}', 3)
@example('{"a":1e999}', 9)
@example('{"a":[1]} {}', 2)
@example('{"a":[1]}\n\n', 1)
@example(' {"a":1}', 1)
@example('\ufeff{"a":1}', 2)
@example('{"a"', 1)
@example("[1,2]x", 1)
@example("", 1)
def test_what_is_no_document_is_refused_in_pieces_too(text: str, block: int) -> None:
    """The same code says why, in whatever pieces it was read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "BLOCK", block)
        assert in_pieces(text.encode(), []) == in_pieces(text.encode(), None) == whole(text.encode())


@pytest.mark.parametrize("content", [b'{"a":"\xff"}', b'{"a":"\xc3', b'{"a":1}\xe2\x82', b"\xed\xa0\x80"])
@pytest.mark.parametrize("block", [1, 2, 100])
def test_bytes_that_are_no_text_are_refused(
    content: bytes, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block may end within a character; what is no UTF-8 as a whole is refused as that."""
    monkeypatch.setattr(verify, "BLOCK", block)

    assert in_pieces(content, None) == whole(content) == "not-utf8"


# --- a bundle


@pytest.mark.parametrize("block", [1, 50, 700])
def test_a_good_bundle_is_good_in_small_pieces(
    kept: Good, revision: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no list fits into a block, each is held against ledger and world as it is read."""
    monkeypatch.setattr(verify, "BLOCK", block)

    assert verify.verify(kept(revision, rarer=True)).valid


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_findings_do_not_depend_on_the_pieces(
    damaged: Good, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with a bundle is found by the same code, in whatever pieces it is read."""
    try:
        folder = damaged(kind, "lab")
    except CorruptionDoesNotApplyError:
        pytest.skip("it needs another bundle")
    found = codes(folder)
    for block in (3, 64):
        monkeypatch.setattr(verify, "BLOCK", block)
        assert codes(folder) == found


@pytest.mark.parametrize("name", ["statuses", "reused_from", "raised", "labels", "event_kinds"])
@pytest.mark.parametrize("change", ["first", "last", "shorter", "longer"])
def test_a_changed_list_is_found_in_pieces(
    good: Good, name: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value too few, too many or another, at the beginning or at the end: by field, as in one piece."""
    folder = good("lab", rarer=True)
    path = folder / "data/results.json"
    value = json.loads(path.read_bytes())
    said = next(row[name] for row in value["rows"] if row["case"] == "A-exact-duplicate")
    said[:] = {
        "first": ["other", *said[1:]], "last": [*said[:-1], "other"],
        "shorter": said[:-1], "longer": [*said, said[-1]],
    }[change]  # fmt: skip
    path.write_text(json.dumps(value), encoding="utf-8")
    bundle.seal(folder)
    found = codes(folder)
    expected = (
        "tail-missing" if (name, change) == ("event_kinds", "longer") else f"row-{name.replace('_', '-')}"
    )

    assert expected in found
    monkeypatch.setattr(verify, "BLOCK", 8)
    assert codes(folder) == found


@pytest.mark.parametrize("block", [1, 5, 2**17])
def test_a_number_is_no_truth_in_any_piece(good: Good, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that says true where 1 should stand has another form, wherever a block ends."""
    folder = good("lab")
    path = folder / "data/results.json"
    text = path.read_text(encoding="utf-8").replace("1,\n        1\n", "true,\n        1\n", 1)
    path.write_text(text, encoding="utf-8")
    bundle.seal(folder)
    monkeypatch.setattr(verify, "BLOCK", block)

    assert "true" in text
    assert codes(folder) == ["document-shape"]


@pytest.mark.parametrize("name", ["results", "protocol"])
def test_fields_may_stand_in_any_order(good: Good, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document whose lists come before the name of their case is read as well; it takes more memory."""
    folder = good("lab", rarer=True)
    path = folder / "data" / f"{name}.json"

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in sorted(value, reverse=True)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    path.write_text(json.dumps(turned(json.loads(path.read_bytes()))), encoding="utf-8")
    bundle.seal(folder)
    monkeypatch.setattr(verify, "BLOCK", 8)

    assert verify.verify(folder).valid


@pytest.mark.parametrize(("name", "rows"), [("results", "rows"), ("protocol", "cases")])
def test_another_version_is_said_before_another_shape(good: Good, name: str, rows: str) -> None:
    """A document of a later version may have other rows: what is wrong is that it is not known here."""
    folder = good("lab")
    path = folder / "data" / f"{name}.json"
    value = json.loads(path.read_bytes())
    value[rows][1] = {"what": "a later version knows"}
    path.write_text(json.dumps(value, sort_keys=True), encoding="utf-8")
    bundle.seal(folder)
    assert codes(folder) == ["document-shape"]

    value["format"] = f"codeai-lab-{name}-v2"
    path.write_text(json.dumps(value, sort_keys=True), encoding="utf-8")
    bundle.seal(folder)
    assert codes(folder) == ["unknown-version"]


# --- what is let go


def many(script: Any, *, replays: int, denials: int = 0) -> None:
    """One case: an action that succeeds, and after it so many replays and denials of one key each."""
    script.begin("A")
    script.carried_out(script.asked("action", "a", "k"), "line\n", **DONE)
    for number in range(replays):
        again = script.asked("action", f"r{number}", "k")
        script.completed_at_once(again, reused_from_action_id="a", **DONE)
    for number in range(denials):
        script.completed_at_once(script.asked("action", f"d{number}", "other"), **DENIED)
    count = 1 + replays + denials
    script.end(
        ["succeeded"] * (1 + replays) + ["denied"] * denials,
        [None, *["a"] * replays, *[None] * denials],
        [None] * count,
        [1, 1],
        [None, *["replay"] * replays, *["denied"] * denials],
    )


def test_memory_grows_with_the_keys_alone(
    script: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V3: a request that was answered from the record, or denied, costs its name and some bytes."""
    monkeypatch.setattr(verify, "BLOCK", 4096)
    monkeypatch.setattr(verify, "SORTED_AT_ONCE", 64)
    monkeypatch.setattr(verify, "IN_ONE_TEXT", 64)

    def peak(each: int) -> int:
        written = type(script("lab"))(tmp_path / f"run-{each}", "lab")
        many(written, replays=each, denials=each)
        written.freeze(tmp_path / f"bundle-{each}")
        verify.verify(tmp_path / f"bundle-{each}")  # what is made once is there
        tracemalloc.start()
        assert verify.verify(tmp_path / f"bundle-{each}").valid
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return memory

    few, more = peak(200), peak(1700)

    assert (more - few) / 3000 < 60  # bytes a request, of two events


@pytest.mark.parametrize("kind", ["replay", "denial", "refusal"])
def test_a_name_is_given_once(
    script: Callable[[str], Any], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second request under the name of one that was let go is found, consistent as it may be."""
    monkeypatch.setattr(verify, "SORTED_AT_ONCE", 2)
    written = script("lab")
    written.begin("A")
    written.carried_out(written.asked("action", "a", "k"), "line\n", **DONE)
    statuses: dict[str, str | None] = {"replay": "succeeded", "denial": "denied", "refusal": None}
    labels = {"replay": "replay", "denial": "denied", "refusal": "refused"}
    for name in ("kept", "one", "two", "one"):
        written.causes.pop(name, None)
        if kind == "replay":
            written.completed_at_once(written.asked("action", name, "k"), reused_from_action_id="a", **DONE)
        elif kind == "denial":
            written.completed_at_once(written.asked("action", name, "other"), **DENIED)
        else:
            other = written.asked("action", name, "k", instruction="delete the file")
            written.refused(other, "a", ["instruction"], "identity-conflict")
    written.end(
        ["succeeded"] + [statuses[kind]] * 4,
        [None] + ["a" if kind == "replay" else None] * 4,
        [None] + ["IdempotencyConflictError" if kind == "refusal" else None] * 4,
        [1, 1],
        [None] + [labels[kind]] * 4,
    )
    written.freeze(tmp_path / "bundle")
    found = verify.verify(tmp_path / "bundle").findings

    assert [(finding.code, finding.message) for finding in found] == [
        ("out-of-order", '"one" is the name of an earlier one')
    ]


def test_names_with_one_hash_are_told_apart(kept: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal hashes alone make no name twice."""
    monkeypatch.setattr(verify, "hash", lambda _: 7, raising=False)

    assert verify.verify(kept("lab", rarer=True)).valid


def test_a_refused_verdict_on_a_replay_names_it(script: Callable[[str], Any], tmp_path: Path) -> None:
    """Who asks to reconcile a replay is told that there is nothing to do; another's key is found."""

    def found(stream: str, key: str) -> list[str]:
        written = type(script("lab"))(tmp_path / f"run-{stream}-{key}", "lab")
        many(written, replays=3)
        row, plan = written.rows[-1], written.cases[-1]
        written.keys[stream] = key
        written.append(
            (stream, "action.reconcile_refused", {"action_id": stream, "reason": "nothing-to-reconcile"})
        )
        assert (row["event_kinds"][-1], plan["case"]) == ("action.reconcile_refused", "A")
        written.freeze(tmp_path / f"bundle-{stream}-{key}")
        return codes(tmp_path / f"bundle-{stream}-{key}")

    assert found("r1", "k") == []
    assert found("r1", "another") == ["stream-differs"]
    assert "request-missing" in found("r9", "k")


def test_no_name_has_a_line_of_its_own_within() -> None:
    """Names can be kept as lines of one text: in a line of the ledger a newline is escaped."""
    assert "\n" not in rfc8785.dumps("a\nb").decode()


@pytest.mark.parametrize("marked", [["threads"], ["processes"]])
def test_a_mark_says_nothing_of_a_trajectory(tmp_path: Path, marked: list[str]) -> None:
    """V2: a trajectory whose case is marked has a verdict, since a mark is about requests alone."""
    freeze_film_recovery(tmp_path / "film")
    path = tmp_path / "film/data/protocol.json"
    value = json.loads(path.read_bytes())
    value["cases"][0]["marked"] = marked
    path.write_text(json.dumps(value), encoding="utf-8")
    bundle.seal(tmp_path / "film")

    assert verify.verify(tmp_path / "film").valid
