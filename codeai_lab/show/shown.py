"""How is a picture shown so that it can be read, heard, compared and trusted?

Chapter: 004, "The executed demo, read exactly".

Idea: a figure is three things that stay together: a picture, a sentence that says what is seen, and the
numbers it was drawn from. The picture travels inside an HTML image (an untrusted notebook hides a bare SVG);
what a rerun compares are the sentence and the numbers.

Always true:
  F1. The same numbers give the same bytes, in any process and whatever the user's own matplotlib settings
      are.
  F2. A figure has an alternative text and its numbers; neither can be left out.
  F3. A picture reads in grey: shape and hatch carry what colour carries. No pyplot state is read or left
      behind.

Not here: which pictures there are (`show.figures`, `show.timelines`), tables alone (`show.tables`).

Source: M. Okabe and K. Ito, Color Universal Design, 2008 (the palette).
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.tables import ShownTable, shown_table

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

BLUE, ORANGE, GREEN, VERMILION, SKY, INK, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#1A1A1A", "#767676",
)  # fmt: skip
STYLE: dict[RcKeyType, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "codeai_lab",
}
_PNG_DOTS_PER_INCH = 150


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Shown:
    """A picture with its alternative text, its caption and its numbers.

    `numbers` is what was drawn, one observation a line; `table` is how the page shows it.
    """

    alt: str
    caption: str
    numbers: pd.DataFrame
    table: ShownTable
    svg: bytes
    png: bytes

    def __repr__(self) -> str:
        """Give the alternative text and the numbers: what a rerun compares."""
        return f"{self.alt}\n\n{self.table!r}"

    def _repr_html_(self) -> str:
        source = "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()
        return (
            '<figure style="margin:0 0 12px 0">'
            f'<img alt="{escape(self.alt)}" src="{source}" style="max-width:100%;height:auto">'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>\n"
            f"{self.table._repr_html_()}"
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture (.svg, .png) or its numbers (.csv); the same figure gives the same bytes.

        Raises: RefusedValueError for another ending, or when the file cannot be written (definite).
        Touches: one file, replaced if it is there.
        """
        target = Path(path)
        makers = {".svg": lambda: self.svg, ".png": lambda: self.png, ".csv": self._csv}
        if target.suffix not in makers:
            raise RefusedValueError(
                target.name, "a figure is saved as .svg, .png or .csv; choose one of these."
            )
        content, was_there = makers[target.suffix](), target.exists()
        try:
            target.write_bytes(content)
        except OSError as error:
            if not was_there:  # half a picture is none
                with suppress(OSError):
                    target.unlink(missing_ok=True)
            reason = (error.strerror or "the system refused").lower()
            why = f"it could not be written ({reason}); choose another place."
            raise RefusedValueError(target.name, why) from None
        return target

    def _csv(self) -> bytes:
        return self.numbers.to_csv(index=False, lineterminator="\n").encode()


def show_figure(
    fig: Figure,
    *,
    alt: str,
    caption: str,
    numbers: pd.DataFrame | Iterable[Mapping[str, Any]],
    table: ShownTable | None = None,
) -> Shown:
    """Turn a matplotlib figure into a value that a notebook shows and a rerun compares; the figure is closed.

    Args:
        fig: any matplotlib figure, made with or without pyplot.
        alt: one or two sentences that say what is seen, for who does not see it.
        caption: what the picture shows, and what it cannot show.
        numbers: what was drawn, as a frame or as mappings.
        table: a shorter form of the numbers for the page; left out, the numbers are shown as they are.
    Raises: RefusedValueError when the alternative text or the numbers are empty (definite).
    """
    if not alt.strip():
        raise RefusedValueError("alt", "a figure needs an alternative text; say what is seen.")
    frame = numbers.copy() if isinstance(numbers, pd.DataFrame) else pd.DataFrame(list(numbers))
    if frame.empty:
        raise RefusedValueError("numbers", "a figure needs the numbers it was drawn from.")
    with house_style():
        svg, png = io.BytesIO(), io.BytesIO()
        fig.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Title": alt})
        fig.savefig(png, format="png", dpi=_PNG_DOTS_PER_INCH, metadata={"Software": None})
    _close(fig)
    return Shown(
        alt=alt,
        caption=caption,
        numbers=frame,
        table=table or shown_table(frame, "The numbers behind the picture"),
        svg=svg.getvalue(),
        png=png.getvalue(),
    )


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with matplotlib's own defaults and our style, and put the user's settings back afterwards (F1)."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in STYLE.items():
            mpl.rcParams[name] = value
        yield


def as_drawn(text: str) -> str:
    """Keep a dollar sign a dollar sign: matplotlib would read two of them as mathematics."""
    return text.replace("$", r"\$")


def _close(fig: Figure) -> None:
    """Let pyplot forget the figure if pyplot made it; a figure made without pyplot never loads it (F3)."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(fig)
