"""Which retry loops and formulas are compared, and what is known of each beforehand?

Chapter: 000, section 15.7.

Idea: one entry for each: its formula in words, the same formula as a law, and the function that drives the
library's own loop. What has no such function is a formula, and is called one.

Always true:
  LK1. A case, named after library and kind, is one of a kind.
  LK2. An entry without a loop names where its formula comes from instead of a version.

Not here: driving (`lessons.library_loops`, `lessons.library_requests`), the laws (`explore.library_laws`),
the rows (`lessons.libraries`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from codeai_lab.explore import library_laws as laws
from codeai_lab.explore.library_laws import Law, each
from codeai_lab.lessons import library_loops as loops
from codeai_lab.lessons import library_requests as asking

Drive = Callable[[Random], list[float]]  # drives one loop and gives its waits, in seconds


class CapOrder(StrEnum):
    """Whether the cap is applied before the jitter or after it, which undoes the jitter at the cap."""

    BEFORE = "before"
    AFTER = "after"
    NONE = "none"  # there is no jitter, or no cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One loop or formula.

    Args:
        library: as it is installed, or the name of what the formula is of.
        kind: what is asked for, where the library has several.
        wait: the wait before retry n, counted from 1.
        counts_first_attempt: whether the library's limit counts attempts; None where there is none.
        drive: None for a formula.
        one_loop_in: of so many loops asked for one is driven, where a loop takes many milliseconds.
        note: what a reader of the row should know.
    """

    library: str
    wait: str
    law: Law
    cap_order: CapOrder
    counts_first_attempt: bool | None
    kind: str = ""
    drive: Drive | None = None
    one_loop_in: int = 1
    note: str = ""

    @property
    def rule(self) -> str:
        return f"{self.kind}: {self.wait}" if self.kind else self.wait

    @property
    def case(self) -> str:
        return re.sub("[^a-z0-9.]+", "-", f"{self.library} {self.kind}".lower()).strip("-")


BEFORE, AFTER, NONE = CapOrder
W, UNCAPPED = "min(20, 2^(n-1))", "2^(n-1)"  # the window
FROM_TWO = "min(20, 2^n)"
OWN_NUMBERS = "Base 0.5, cap 8 and the jitter are fixed by the library."

DRIVEN = (
    Entry(
        library="tenacity", kind="wait_exponential", wait=f"{W}", law=each(laws.exponential), cap_order=NONE,
        counts_first_attempt=True, drive=loops.tenacity("wait_exponential"),
    ),
    Entry(
        library="tenacity", kind="wait_random_exponential", wait=f"U(0, {W})", law=each(laws.full_jitter),
        cap_order=BEFORE, counts_first_attempt=True, drive=loops.tenacity("wait_random_exponential"),
    ),
    Entry(
        library="tenacity", kind="wait_exponential_jitter", wait=f"min(20, {UNCAPPED} + U(0, 1))",
        law=each(laws.jitter_then_cap), cap_order=AFTER, counts_first_attempt=True,
        drive=loops.tenacity("wait_exponential_jitter", jitter=laws.JITTER),
    ),
    Entry(
        library="stamina", wait=f"min(20, {UNCAPPED} + U(0, 1))", law=each(laws.jitter_then_cap),
        cap_order=AFTER, counts_first_attempt=True, drive=loops.stamina,
    ),
    Entry(
        library="backoff", kind="expo, full_jitter", wait=f"U(0, {W})", law=each(laws.full_jitter),
        cap_order=BEFORE, counts_first_attempt=True, drive=loops.backoff("full_jitter"),
    ),
    Entry(
        library="backoff", kind="expo, random_jitter", wait=f"{W} + U(0, 1)", law=each(laws.cap_then_jitter),
        cap_order=BEFORE, counts_first_attempt=True, drive=loops.backoff("random_jitter"),
        note="A wait may exceed the cap.",
    ),
    Entry(
        library="google-api-core", kind="Retry", wait=f"U(0, {W})", law=each(laws.full_jitter),
        cap_order=BEFORE, counts_first_attempt=None, drive=loops.google_api_core,
        note="Counts no attempts; a deadline alone ends it, 120 seconds unless another is asked for.",
    ),
    Entry(
        library="urllib3", kind="backoff_jitter=0", wait=f"0, then {W}", law=each(laws.urllib3_exponential),
        cap_order=NONE, counts_first_attempt=False, drive=asking.urllib3(0.0),
        note="The first retry comes at once.",
    ),
    Entry(
        library="urllib3", kind="backoff_jitter=1", wait=f"0, then min(20, {UNCAPPED} + U(0, 1))",
        law=each(laws.urllib3_jitter), cap_order=AFTER, counts_first_attempt=False,
        drive=asking.urllib3(laws.JITTER), note="The first retry comes at once.",
    ),
    Entry(
        library="httpx-retries", kind="backoff_jitter=1", wait="min(20, 2^n U(0, 1))",
        law=each(laws.httpx_retries(1.0)), cap_order=AFTER, counts_first_attempt=False,
        drive=asking.httpx_retries(1.0),
    ),
    Entry(
        library="httpx-retries", kind="backoff_jitter=0.5", wait="min(20, 2^n U(0.5, 1))",
        law=each(laws.httpx_retries(0.5)), cap_order=AFTER, counts_first_attempt=False,
        drive=asking.httpx_retries(0.5),
    ),
    Entry(
        library="aiohttp-retry", kind="ExponentialRetry", wait=FROM_TWO,
        law=each(laws.aiohttp_exponential), cap_order=NONE, counts_first_attempt=True,
        drive=asking.aiohttp_retry("ExponentialRetry"),
    ),
    Entry(
        library="aiohttp-retry", kind="JitterRetry", wait=f"{FROM_TWO} + U(0, 1)^2",
        law=each(laws.aiohttp_jitter), cap_order=BEFORE, counts_first_attempt=True,
        drive=asking.aiohttp_retry("JitterRetry", random_interval_size=laws.JITTER),
        note="A wait may exceed the cap; the jitter is raised to the power of the factor.",
    ),
    Entry(
        library="botocore", kind="standard, transient", wait="min(20, 0.05 2^(n-1)) U(0, 1)",
        law=each(laws.botocore_standard(0.05)), cap_order=BEFORE, counts_first_attempt=True,
        drive=asking.botocore("standard", 503), note="Base and cap are fixed by the library.",
    ),
    Entry(
        library="botocore", kind="standard, throttling", wait=f"{W} U(0, 1)",
        law=each(laws.botocore_standard(1.0)), cap_order=BEFORE, counts_first_attempt=True,
        drive=asking.botocore("standard", 429),
        note="Base and cap are fixed by the library.",
    ),
    Entry(
        library="botocore", kind="legacy", wait=f"{UNCAPPED} U(0, 1)", law=each(laws.botocore_legacy),
        cap_order=NONE, counts_first_attempt=True, drive=asking.botocore("legacy", 503),
        note="Knows no cap.",
    ),
    Entry(
        library="openai", wait="min(8, 0.5 2^(n-1)) U(0.75, 1)", law=each(laws.model_sdk), cap_order=BEFORE,
        counts_first_attempt=False, drive=asking.model_sdk("openai", "OpenAI"), one_loop_in=4,
        note=OWN_NUMBERS,
    ),
    Entry(
        library="anthropic", wait="min(8, 0.5 2^(n-1)) U(0.75, 1)", law=each(laws.model_sdk),
        cap_order=BEFORE, counts_first_attempt=False, one_loop_in=4,
        drive=asking.model_sdk("anthropic", "Anthropic", open_telemetry=False), note=OWN_NUMBERS,
    ),
    Entry(
        library="requests", kind="as it comes", wait="no retry", law=laws.no_retry, cap_order=NONE,
        counts_first_attempt=None, drive=asking.requests, note="One attempt: the 503 is the answer.",
    ),
)  # fmt: skip

FORMULAS = (
    Entry(
        library="gRPC", kind="proposal A6", wait=f"{W} U(0.8, 1.2)", law=each(laws.grpc), cap_order=BEFORE,
        counts_first_attempt=True, note="A formula, not driven. A wait may exceed the cap by a fifth.",
    ),
    Entry(
        library="Polly", kind="version 8",
        wait="min(20, step of 2^t tanh(sqrt(4t)) / 1.4), t = n-1 + U(0, 1)",
        law=laws.polly, cap_order=AFTER, counts_first_attempt=False,
        note="A formula, not driven. A long wait makes the next one short.",
    ),
    Entry(
        library="the jitter study", kind="full jitter", wait=f"U(0, {FROM_TWO})",
        law=each(laws.study_full_jitter), cap_order=BEFORE, counts_first_attempt=None,
        note="A formula, not driven.",
    ),
    Entry(
        library="the chapter", wait=f"floor(U(0, 1) {W}), in milliseconds", law=each(laws.chapter),
        cap_order=BEFORE, counts_first_attempt=True,
        note="A formula, not driven. A longer wait that the other side asks for may exceed the cap.",
    ),
)  # fmt: skip
CATALOGUE = (*DRIVEN, *FORMULAS)
