"""The log of a table as one HTML page, without scripts or other files."""

from collections.abc import Sequence
from html import escape

import numpy as np

from icefield.history.log import LogEntry

_HEIGHT, _WIDTH, _RADIUS = 28, 18, 4
_COLOURS = ("#2463eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2")
_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse } td, th { padding: 0 .8em; height: 28px; text-align: left; white-space: nowrap }
td.number { text-align: right; font-variant-numeric: tabular-nums } td.graph { padding: 0 }
.ref { background: #e0e7ff; border-radius: 4px; padding: 0 .4em; margin-right: .3em }
svg { display: block }
"""
_TITLES = ("", "snapshot", "committed", "operation", "rows added", "rows removed", "refs", "")


def render_log(table: str, entries: Sequence[LogEntry]) -> str:
    """Return the page."""
    rows = "\n".join(_row(entry) for entry in entries)
    titles = "".join(f"<th>{title}</th>" for title in _TITLES)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(table)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(table)}</h1>\n"
        f"<table><tr>{titles}</tr>\n{rows}\n</table></body></html>\n"
    )


def _row(entry: LogEntry) -> str:
    snapshot = entry.snapshot
    refs = "".join(f'<span class="ref">{escape(name)}</span>' for name in entry.refs)
    moment = f"{np.datetime64(snapshot.timestamp_ms, 'ms')}Z"
    counts = "".join(
        f'<td class="number">{escape(snapshot.summary.get(key, "0"))}</td>'
        for key in ("added-records", "deleted-records")
    )
    return (
        f'<tr><td class="graph">{_drawing(entry)}</td><td class="number">{snapshot.snapshot_id}</td><td>{moment}</td>'
        f"<td>{escape(snapshot.operation or '')}</td>{counts}<td>{refs}</td><td>{escape(entry.note)}</td></tr>"
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
    parents = {entry.snapshot.parent_snapshot_id, _number(entry.snapshot.summary.get("icefield.merged-snapshot-id"))}
    lines += [
        _line(entry.track, _HEIGHT / 2, at, _HEIGHT) for at, each in enumerate(entry.after) if each in parents - {None}
    ]
    x, colour = _x(entry.track), _COLOURS[entry.track % len(_COLOURS)]
    point = f'<circle cx="{x}" cy="{_HEIGHT / 2}" r="{_RADIUS}" fill="{colour}"/>'
    return f'<svg width="{tracks * _WIDTH}" height="{_HEIGHT}">{"".join(lines)}{point}</svg>'


def _line(track: int, top: float, to_track: int, bottom: float) -> str:
    colour = _COLOURS[max(track, to_track) % len(_COLOURS)]
    return f'<line x1="{_x(track)}" y1="{top}" x2="{_x(to_track)}" y2="{bottom}" stroke="{colour}" stroke-width="2"/>'


def _x(track: int) -> float:
    return track * _WIDTH + _WIDTH / 2


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
