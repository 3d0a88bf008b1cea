"""Tables that fit a terminal: which columns are cut, and what is shown in place of a table that cannot fit."""

from collections.abc import Sequence

# A column that is cut keeps at least so many characters; with less, each row is shown as lines of its own.
_LEAST_WIDTH = 8
_GAP = 2


def fitted_widths(
    titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, whole: Sequence[int] = ()
) -> list[int] | None:
    """Return the width of each column so that a line has at most `width` characters; None if that is not possible.

    The widest columns are cut first. Of the columns in `whole`, by their numbers, only titles are cut, never cells: a
    number that is cut looks like another one.
    """
    least = [max((len(row[at]) for row in rows), default=0) if at in whole else 0 for at in range(len(titles))]
    least = [max(_LEAST_WIDTH, each) for each in least]
    widths = [max([1, len(title), *(len(row[at]) for row in rows)]) for at, title in enumerate(titles)]
    if width is None or not widths:
        return widths
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    while excess > 0:
        cuttable = [at for at, each in enumerate(widths) if each > least[at]]
        if not cuttable:
            return None
        widest = max(widths[at] for at in cuttable)
        cut = [at for at in cuttable if widths[at] == widest]
        below = max([*(least[at] for at in cut), *(widths[at] for at in cuttable if widths[at] < widest)])
        step = max(1, min(widest - below, -(-excess // len(cut))))
        for at in cut:
            widths[at] -= step
        excess -= step * len(cut)
    return widths


def cut_text(text: str, most: int) -> str:
    """Return a text in at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def row_blocks(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return each row as lines of its own, with the title of each column before its value."""
    return "\n".join(_block(titles, number, row) for number, row in enumerate(rows, 1))


def _block(titles: Sequence[str], number: int, row: Sequence[str]) -> str:
    widest = max(map(len, titles))
    lines = [f"{title:<{widest}}  {cell}" for title, cell in zip(titles, row, strict=True)]
    return "\n".join([f"row {number}", *lines])
