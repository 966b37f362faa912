"""What holds retries back when everything fails?

Chapter: 000, section 15.7: one retry owner, with a budget.

Idea: a client, or all clients of a service together, keep a small account. What pays into it tells the rules
apart: each *request* (then a total outage goes on being retried, a little), or each *success* (then it soon
is not). Two others look at what came of recent attempts and hold first tries back as well: adaptive
throttling does so by a share, the circuit breaker altogether.

Always true:
  BU1. A budget never decides by itself: instants and draws are handed in, in the order of time.
  BU2. An account never holds more than its bound, and never less than nothing.
  BU3. A budget that does not say otherwise lets everything through.

Not here: the limit on attempts and the waits between them (`decide.backoff`), how a server defends itself
(`explore.overload`: a bounded queue, dropping what is too late).

Sources: gRPC's retry throttling (A6), Finagle's and Linkerd's retry budget, the retry quota of the AWS SDKs,
adaptive throttling as described for Google's clients. In each of them one account stands for all clients.
"""

from __future__ import annotations

from codeai_lab.errors import RefusedRequestError


class Budget:
    """Everything is let through: what the others differ from."""

    def asked(self, at: float) -> None:
        """Hear that a request begins."""

    def answered(self, at: float) -> None:
        """Hear that an attempt was answered in time."""

    def failed(self, at: float) -> None:
        """Hear that an attempt was not."""

    def lets_retry(self, at: float) -> bool:  # noqa: ARG002
        """Say whether a retry may be made, and take what it costs."""
        return True

    def lets_send(self, at: float, draw: float) -> bool:  # noqa: ARG002
        """Say whether an attempt, a first one too, may be sent at all; `draw` is a number from [0, 1)."""
        return True


class RequestFunded(Budget):
    """Each request pays `ratio` of a retry; what was not used is gone after ten seconds.

    The reserve that real ones add, some retries a second for services with few requests, is left out.
    """

    SECONDS = 10

    def __init__(self, ratio: float) -> None:
        if not ratio >= 0:
            raise RefusedRequestError("The ratio of retries to requests is a number from 0.")
        self._ratio = ratio
        self._seconds = _LastSeconds(self.SECONDS)

    def asked(self, at: float) -> None:
        self._seconds.add(at, self._ratio)

    def lets_retry(self, at: float) -> bool:
        if self._seconds.total(at) < 1:
            return False
        self._seconds.add(at, -1)
        return True


class SuccessFunded(Budget):
    """gRPC's bucket: a failure takes 1, a success pays `ratio`; retries only while more than half is left."""

    def __init__(self, most: float = 100, ratio: float = 0.1) -> None:
        self._most, self._ratio = most, ratio
        self.tokens = float(most)

    def answered(self, at: float) -> None:  # noqa: ARG002
        self.tokens = min(self._most, self.tokens + self._ratio)

    def failed(self, at: float) -> None:  # noqa: ARG002
        self.tokens = max(0.0, self.tokens - 1)

    def lets_retry(self, at: float) -> bool:  # noqa: ARG002
        return self.tokens > self._most / 2


class RetryQuota(Budget):
    """The AWS SDKs' quota: a retry takes `cost`, a success pays `gain`.

    Simplified: a success after a retry pays the same, where the real one gives the last cost back.
    """

    def __init__(self, most: float = 500, cost: float = 14, gain: float = 1) -> None:
        self._most, self._cost, self._gain = most, cost, gain
        self.tokens = float(most)

    def answered(self, at: float) -> None:  # noqa: ARG002
        self.tokens = min(self._most, self.tokens + self._gain)

    def lets_retry(self, at: float) -> bool:  # noqa: ARG002
        if self.tokens < self._cost:
            return False
        self.tokens -= self._cost
        return True


class AdaptiveThrottling(Budget):
    """Attempts are refused at home with max(0, (requests - K accepts) / (requests + 1)), over two minutes."""

    SECONDS = 120

    def __init__(self, k: float = 2.0) -> None:
        if k < 1:
            raise RefusedRequestError("K is a number from 1; below, a healthy backend would be held back.")
        self._k = k
        self._requests, self._accepts = _LastSeconds(self.SECONDS), _LastSeconds(self.SECONDS)

    def answered(self, at: float) -> None:
        self._accepts.add(at, 1)

    def lets_send(self, at: float, draw: float) -> bool:
        requests = self._requests.total(at)
        refused = (requests - self._k * self._accepts.total(at)) / (requests + 1)
        self._requests.add(at, 1)  # refused ones count as requests too
        return draw >= refused


class CircuitBreaker(Budget):
    """Open after so many failures in a row; then one attempt per cool-down, and closed once one succeeds."""

    def __init__(self, failures: int = 20, cool_down_s: float = 5.0) -> None:
        self._failures, self._cool_down_s = failures, cool_down_s
        self._in_a_row, self._next_probe_s = 0, 0.0

    def answered(self, at: float) -> None:  # noqa: ARG002
        self._in_a_row = 0

    def failed(self, at: float) -> None:
        self._in_a_row += 1
        if self._in_a_row == self._failures:
            self._next_probe_s = at + self._cool_down_s

    def lets_send(self, at: float, draw: float) -> bool:  # noqa: ARG002
        if self._in_a_row < self._failures:
            return True
        if at < self._next_probe_s:
            return False
        self._next_probe_s = at + self._cool_down_s
        return True


class _LastSeconds:
    """A sum over the last n seconds, kept by the second."""

    def __init__(self, seconds: int) -> None:
        self._slots = [0.0] * seconds
        self._now, self._sum = 0, 0.0

    def add(self, at: float, amount: float) -> None:
        self._move_to(int(at))
        self._slots[self._now % len(self._slots)] += amount
        self._sum += amount

    def total(self, at: float) -> float:
        if int(at) != self._now:
            self._move_to(int(at))
        return self._sum

    def _move_to(self, second: int) -> None:
        for passed in range(self._now + 1, min(second, self._now + len(self._slots)) + 1):
            self._slots[passed % len(self._slots)] = 0.0
        if second != self._now:
            self._now, self._sum = second, sum(self._slots)  # summed anew: rounding does not pile up
