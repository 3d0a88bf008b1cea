"""What a scan reads as a page: how many files, rows and bytes are left after each step."""

from collections.abc import Callable

from icefield.cli.output import counted
from icefield.cli.pictures.page import box, label, page, paragraph, section, svg, verbatim
from icefield.explain.explain import Explanation
from icefield.showing import format_bytes

_WIDTH, _HEIGHT, _GAP, _LEFT, _RIGHT = 420, 30, 8, 210, 190

Stage = tuple[str, int]


def render_explanation(explanation: Explanation) -> str:
    """Return the page."""
    metrics = explanation.plan.metrics
    opened = metrics.manifests - metrics.manifests_pruned
    funnels = (
        ("Manifests", [("in all", metrics.manifests), ("left by partition summaries", opened)], "{:,}".format),
        ("Files", _stages(metrics.files, metrics.files_in_pruned_manifests, metrics, "files"), "{:,}".format),
        (
            "Rows in these files",
            _stages(metrics.rows, metrics.rows_in_pruned_manifests, metrics, "rows"),
            "{:,}".format,
        ),
        ("Bytes of files in the manifests read", _stages(metrics.bytes_listed, 0, metrics, "bytes")[1:], format_bytes),
    )
    at = "the empty table" if explanation.snapshot_id is None else f"snapshot {explanation.snapshot_id}"
    said = paragraph(
        f"{counted(metrics.files_read, 'file')} of {metrics.files:,} of {at} are read for: {explanation.filter}"
    )
    parts = [said, *(section(title, _funnel(title, stages, write)) for title, stages, write in funnels)]
    return page(f"scan of {explanation.table}", [*parts, section("As text", verbatim(str(explanation)))])


def _stages(everything: int, in_pruned_manifests: int, metrics: object, unit: str) -> list[Stage]:
    left = everything - in_pruned_manifests
    after_partitions = left - int(getattr(metrics, f"{unit}_pruned_by_partition"))
    return [
        ("in all", everything),
        ("in the manifests read", left),
        ("left by partition", after_partitions),
        ("left by statistics, to read", after_partitions - int(getattr(metrics, f"{unit}_pruned_by_statistics"))),
    ]


def _funnel(title: str, stages: list[Stage], write: Callable[[int], str]) -> str:
    """Draw a bar for each stage, as wide as what is left, around one axis."""
    most = max((count for _, count in stages), default=0)
    shapes, described = [], []
    for at, (name, count) in enumerate(stages):
        y = at * (_HEIGHT + _GAP)
        width = max(_WIDTH * count / most, 2 if count else 0) if most else 0
        share = f" ({_percent(count / most)})" if most else ""
        tip = f"{name}: {write(count)}{share}"
        shapes += [
            box((_LEFT, y, _WIDTH, _HEIGHT), "frame"),
            box((_LEFT + (_WIDTH - width) / 2, y, width, _HEIGHT), "f0", tip=tip),
            label(_LEFT - 10, y + _HEIGHT / 2 + 4, name, anchor="end"),
            label(_LEFT + _WIDTH + 10, y + _HEIGHT / 2 + 4, f"{write(count)}{share}"),
        ]
        described.append(tip)
    height = len(stages) * (_HEIGHT + _GAP)
    return svg(_LEFT + _WIDTH + _RIGHT, height, shapes, f"{title}: {'; '.join(described)}")


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
