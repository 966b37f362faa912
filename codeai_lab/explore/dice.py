"""Where does chance come from, so that the same seed gives the same bytes for ever?

Chapter: 000, section 15.8: the jitter is an injected sample.

Idea: every sampled thing has a stream of its own, made from the seed and from the thing's *names*: the
strategy, the number of clients, the part of the sweep. Nothing is handed on from one stream to the next, so
another strategy beside it, another order or another process changes no number of the rest.

Always true:
  DI1. The same seed and names give the same stream, whatever else is sampled, wherever it runs.
  DI2. A seed is a whole number from 0; booleans and fractions are refused.

Not here: who rolls them (`explore.contention`, `explore.duplicates`, ...).
"""

from __future__ import annotations

import hashlib

import numpy as np

from codeai_lab.errors import RefusedRequestError


def stream(seed: int, *names: object) -> np.random.Generator:
    """Give the random stream of these names under a seed.

    Args:
        seed: a whole number from 0.
        names: texts and whole numbers; `("full", 100)` and `("full", "100")` are the same names.

    Raises: RefusedRequestError (definite) for a seed that is none.
    """
    require_seed(seed)
    named = hashlib.sha256("\x00".join(str(name) for name in names).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *named])))


def require_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if type(seed) is not int or seed < 0:
        raise RefusedRequestError("A seed is a whole number from 0.")
