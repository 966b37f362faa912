"""Does nothing but a current grant for this capability and this performer permit anything?"""

from __future__ import annotations

import pytest

from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant, Permission, PolicyEngine
from codeai_lab.errors import NotPermittedError

NOW_US = 1_000
APPEND = "file.append"

GRANTED = "granted"
UNNAMED = "no grant names this capability"
FOREIGN = "the grant is for another performer"
EXPIRED = "the grant has expired"


def grants(*rows: tuple[str, str | None, int | None]) -> Authority:
    return Authority(
        grants=tuple(Grant(capability=name, performer=who, expires_at_us=end) for name, who, end in rows)
    )


@pytest.mark.parametrize(
    ("authority", "reason"),
    [
        (NO_AUTHORITY, UNNAMED),
        (Authority(), UNNAMED),
        (grants(("file.remove", None, None)), UNNAMED),
        (grants(("file", None, None)), UNNAMED),
        (grants(("file.append.more", None, None)), UNNAMED),
        (grants(("FILE.APPEND", None, None)), UNNAMED),
        (grants((APPEND, "bob", None)), FOREIGN),
        (grants((APPEND, "", None)), FOREIGN),
        (grants((APPEND, "bob", None), ("file.remove", "alice", None)), FOREIGN),
        (grants((APPEND, None, NOW_US)), EXPIRED),
        (grants((APPEND, None, NOW_US - 1)), EXPIRED),
        (grants((APPEND, None, 0)), EXPIRED),
        (grants((APPEND, "alice", NOW_US), (APPEND, None, 0)), EXPIRED),
        (grants((APPEND, "alice", NOW_US), (APPEND, "bob", None)), EXPIRED),
        (grants((APPEND, None, NOW_US + 1)), GRANTED),
        (grants((APPEND, None, None)), GRANTED),
        (grants((APPEND, "alice", None)), GRANTED),
        (grants((APPEND, None, NOW_US), (APPEND, None, NOW_US + 1)), GRANTED),
        (grants((APPEND, "alice", NOW_US + 1), (APPEND, None, NOW_US)), GRANTED),
        (grants((APPEND, "bob", None), (APPEND, "alice", None)), GRANTED),
    ],
)
def test_the_judgement_by_row(authority: Authority, reason: str) -> None:
    """A1, A2: the default refuses; a grant permits nothing from the very instant of its end on."""
    engine = PolicyEngine()
    verdict = engine.judge(APPEND, authority, performer="alice", now_us=NOW_US)
    assert verdict == Permission(allowed=reason == GRANTED, reason=reason)
    backwards = Authority(grants=authority.grants[::-1])
    assert engine.judge(APPEND, backwards, performer="alice", now_us=NOW_US) == verdict


def test_what_is_not_permitted_is_raised_with_its_reason() -> None:
    """`require` returns when it is permitted, and raises a definite error otherwise."""
    engine = PolicyEngine()
    engine.require(APPEND, Authority.of(APPEND), performer="alice", now_us=NOW_US)
    with pytest.raises(NotPermittedError) as refused:
        engine.require(APPEND, NO_AUTHORITY, performer="alice", now_us=NOW_US)
    assert refused.value.reason == UNNAMED
    assert refused.value.definite


def test_a_short_way_to_write_endless_grants() -> None:
    """`Authority.of` permits the named capabilities to anyone, without end, and no others."""
    assert Authority.of("a", "b").grants == (Grant(capability="a"), Grant(capability="b"))
    assert Authority.of() == NO_AUTHORITY
