"""Does the verifier, which shares no code with the runtime, know every code that the runtime records?"""

from __future__ import annotations

import re
from pathlib import Path

import codeai_lab.run
from codeai_lab.prove import verify


def test_every_error_code_of_the_runtime_is_known_to_the_verifier() -> None:
    """A completion that the runtime may record is not called impossible, and nothing else is let through."""
    sources = Path(codeai_lab.run.__file__).parent.glob("*.py")
    recorded = {
        code
        for path in sources
        if "action.completed" in path.read_text(encoding="utf-8") or path.stem in ("outcomes", "stages")
        for code in re.findall(r'"code": "([a-z-]+)"', path.read_text(encoding="utf-8"))
    }

    known = {code for codes in verify.ERRORS.values() for code in codes}

    assert recorded == known - {None}
