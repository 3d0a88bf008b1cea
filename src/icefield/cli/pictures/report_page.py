"""What tables store as a page: shares of storage, a heat map of partitions, and a histogram of file sizes."""

import math
from collections import Counter
from collections.abc import Sequence

from icefield.cli.output import counted
from icefield.cli.pictures.layout import Layout, PartitionTotals
from icefield.cli.pictures.page import box, label, page, paragraph, section, svg, table, verbatim
from icefield.report.result import StorageReport
from icefield.upkeep.result import size_text

SHARES = ("live", "history", "waiting", "young", "orphans", "foreign")
_WIDTH, _LEFT = 720, 150
_CELL, _MOST_CELLS, _COLUMNS = 26, 1_500, 24
_PLOT = 140


def render_report(report: StorageReport, layouts: Sequence[Layout], left_out: int = 0) -> str:
    """Return the page; `left_out` tables have no pictures of their own."""
    parts = [section("What is stored", _shares(report), _numbers(report))]
    parts += [_layout(layout) for layout in layouts]
    if left_out:
        parts.append(paragraph(f"… and {counted(left_out, 'more table')}: name one to see its files."))
    return page(report.table, [*parts, section("As text", verbatim(str(report)))])


def _shares(report: StorageReport) -> str:
    """Draw a bar for each table, and for all together, cut into shares."""
    reports = [*report.tables, report] if report.tables else [report]
    most = max((each.stored.bytes for each in reports), default=0)
    shapes: list[str] = []
    for at, each in enumerate(reports):
        x, y = float(_LEFT), at * 32.0
        shapes.append(label(_LEFT - 10, y + 18, _cut(each.table, 22), anchor="end"))
        for number, name in enumerate(SHARES):
            size = getattr(each, name).bytes
            width = (_WIDTH - _LEFT) * size / most if most else 0
            tip = f"{each.table}, {name}: {size_text(size)} in {counted(getattr(each, name).files, 'file')}"
            shapes += [box((x, y, width, 24), f"f{number}", tip=tip)] if size else []
            x += width
        shapes.append(label(x + 8, y + 17, size_text(each.stored.bytes), kind="dim"))
    y = len(reports) * 32 + 8
    for number, name in enumerate(SHARES):
        shapes += [
            box((_LEFT + number * 92, y, 12, 12), f"f{number}"),
            label(_LEFT + number * 92 + 18, y + 11, name),
        ]
    return svg(_WIDTH + 100, y + 20, shapes, f"{report.table}: {size_text(report.stored.bytes)} stored")


def _numbers(report: StorageReport) -> str:
    rows = [(name, getattr(report, name).files, size_text(getattr(report, name).bytes)) for name in SHARES]
    return table(("share", "files", "size"), rows)


def _layout(layout: Layout) -> str:
    files = counted(len(layout.sizes), "data file")
    if not layout.sizes:
        return section(f"Files of {layout.table}", paragraph("There are none."))
    return section(f"Sizes of the {files} of {layout.table}", _histogram(layout)) + section(
        f"Partitions of {layout.table}", *_heat_map(layout)
    )


def _histogram(layout: Layout) -> str:
    """Draw how many files there are of each size, by powers of two; the last line is the target size."""
    counts = Counter(max(size, 1).bit_length() - 1 for size in layout.sizes)
    first, last = min(counts), max(*counts, layout.target_bytes.bit_length() - 1)
    most, step = max(counts.values()), min(60.0, _WIDTH / (last - first + 1))
    shapes: list[str] = []
    for at, power in enumerate(range(first, last + 1)):
        x, height = 10 + at * step, _PLOT * counts[power] / most
        tip = f"{_power(power)} to {_power(power + 1)}: {counted(counts[power], 'file')}"
        shapes.append(
            box((x, 20 + _PLOT - height, step * 0.85, max(height, 1)), "f0" if counts[power] else "empty", tip=tip)
        )
        if counts[power]:
            shapes.append(label(x + (step * 0.85) / 2, 14 + _PLOT - height, f"{counts[power]:,}", anchor="middle"))
        if (power - first) % 3 == 0:
            shapes.append(label(x, 36 + _PLOT, _power(power), kind="dim"))
    target = 10 + (math.log2(layout.target_bytes) - first) * step
    if target >= 0:
        shapes += [box((target, 4, 1.5, _PLOT + 16), "f4"), label(target + 6, 14, "target")]
    return svg(90 + (last - first + 1) * step, _PLOT + 44, shapes, f"sizes of {len(layout.sizes)} files")


def _heat_map(layout: Layout) -> list[str]:
    """Draw a cell for each partition, the darker the more bytes it has."""
    partitions = sorted(layout.partitions.items())
    if len(partitions) == 1 and not partitions[0][0]:
        return [paragraph("The table is not partitioned.")]
    shown, most = partitions[:_MOST_CELLS], max(totals.bytes for _, totals in partitions)
    rows = _rows([parts for parts, _ in shown])
    shapes: list[str] = []
    for y, (name, cells) in enumerate(rows):
        shapes.append(label(_LEFT + 40, y * _CELL + 17, _cut(name, 28), anchor="end", kind="dim"))
        for x, parts in enumerate(cells):
            if parts is not None:
                shapes.append(_heat(x, y, parts, layout.partitions[parts], most))
    width = _LEFT + 60 + _CELL * max(len(cells) for _, cells in rows)
    drawn = svg(width, len(rows) * _CELL + 4, shapes, f"{len(partitions)} partitions by size")
    said = f"{counted(len(partitions), 'partition')}; the largest has {size_text(most)}."
    hidden = len(partitions) - len(shown)
    left_out = f" {hidden:,} more {'is' if hidden == 1 else 'are'} not drawn." if hidden else ""
    return [paragraph(said + left_out), drawn]


def _rows(partitions: list[tuple[str, ...]]) -> list[tuple[str, list[tuple[str, ...] | None]]]:
    """Arrange partitions: those of several fields by the first one, in columns of the others; else line by line."""
    if all(len(parts) > 1 for parts in partitions):
        columns = {rest: at for at, rest in enumerate(sorted({parts[1:] for parts in partitions}))}
        if len(columns) <= 4 * _COLUMNS:
            rows: dict[str, list[tuple[str, ...] | None]] = {}
            for parts in partitions:
                rows.setdefault(parts[0], [None] * len(columns))[columns[parts[1:]]] = parts
            return list(rows.items())
    cut = [partitions[at : at + _COLUMNS] for at in range(0, len(partitions), _COLUMNS)]
    return [("/".join(cells[0]), list(cells)) for cells in cut]


def _heat(x: int, y: int, parts: tuple[str, ...], totals: PartitionTotals, most: int) -> str:
    size = f"{counted(totals.files, 'file')}, {counted(totals.rows, 'row')}, {size_text(totals.bytes)}"
    opacity = 0.15 + 0.85 * totals.bytes / most if most else 1
    at = _LEFT + 50 + x * _CELL
    return box((at, y * _CELL, _CELL - 3, _CELL - 3), "f0", tip=f"{'/'.join(parts)}: {size}", opacity=opacity)


def _power(power: int) -> str:
    """Write a power of two, which is whole in its unit."""
    return f"{2 ** (power % 10):,} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[min(power // 10, 6)]}"


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
