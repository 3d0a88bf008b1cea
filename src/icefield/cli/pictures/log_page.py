"""The log of a table as a page: the graph of its snapshots."""

from collections.abc import Sequence

from icefield.cli.output import moment
from icefield.cli.pictures.page import SERIES, page, text
from icefield.history.log import LogEntry, published_id

_HEIGHT, _WIDTH, _RADIUS = 28, 18, 4
_TITLES = ("", "snapshot", "committed", "operation", "rows added", "rows removed", "refs", "")
# A row is one line high, as its piece of the graph is; what is cut is shown under the mouse.
_STYLE = f"""<style>
.log td {{ height: {_HEIGHT}px; padding-top: 0; padding-bottom: 0; white-space: nowrap }}
.log span {{ display: inline-block; max-width: 16em; overflow: hidden }}
.log span {{ text-overflow: ellipsis; vertical-align: middle }}
.log span.note {{ max-width: 40em }}
</style>"""


def render_log(table: str, entries: Sequence[LogEntry]) -> str:
    """Return the page."""
    if not entries:
        return page(table, ["<p>There are no snapshots.</p>"])
    rows = "\n".join(_row(entry) for entry in entries)
    titles = "".join(f"<th>{title}</th>" for title in _TITLES)
    return page(table, [_STYLE, f'<div class="wide"><table class="log"><tr>{titles}</tr>\n{rows}\n</table></div>'])


def _row(entry: LogEntry) -> str:
    snapshot = entry.snapshot
    refs = "".join(f'<span class="ref" title="{text(name)}">{text(name)}</span>' for name in entry.refs)
    note = f'<span class="note" title="{text(entry.note)}">{text(entry.note)}</span>'
    counts = "".join(
        f'<td class="number">{text(snapshot.summary.get(key, "0"))}</td>'
        for key in ("added-records", "deleted-records")
    )
    return (
        f'<tr><td>{_drawing(entry)}</td><td class="number">{snapshot.snapshot_id}</td>'
        f"<td>{text(moment(snapshot.timestamp_ms))}</td>"
        f"<td>{text(snapshot.operation or '')}</td>{counts}<td>{refs}</td><td>{note}</td></tr>"
    )


def _drawing(entry: LogEntry) -> str:
    """Draw one row of the graph: lines from the columns above to those below, and the snapshot."""
    own, tracks = entry.snapshot.snapshot_id, max(len(entry.before), len(entry.after), entry.track + 1)
    lines = []
    for at, target in enumerate(entry.before):
        if target == own:
            lines.append(_line(at, 0, entry.track, _HEIGHT / 2))
        elif target is not None:
            below = entry.after.index(target) if target in entry.after else at
            lines.append(_line(at, 0, below, _HEIGHT))
    parents = {entry.snapshot.parent_snapshot_id, published_id(entry.snapshot)}
    lines += [
        _line(entry.track, _HEIGHT / 2, at, _HEIGHT) for at, each in enumerate(entry.after) if each in parents - {None}
    ]
    point = f'<circle cx="{_x(entry.track)}" cy="{_HEIGHT / 2}" r="{_RADIUS}" class="f{entry.track % SERIES}"/>'
    return f'<svg width="{tracks * _WIDTH}" height="{_HEIGHT}">{"".join(lines)}{point}</svg>'


def _line(track: int, top: float, to_track: int, bottom: float) -> str:
    colour = max(track, to_track) % SERIES
    ends = f'x1="{_x(track)}" y1="{top}" x2="{_x(to_track)}" y2="{bottom}"'
    return f'<line {ends} class="s{colour}" stroke-width="2"/>'


def _x(track: int) -> float:
    return track * _WIDTH + _WIDTH / 2
