"""The difference of two versions as a page: counts, changes of the definition, and some rows."""

from collections.abc import Mapping, Sequence

from icefield.cli.pictures.page import page, section, table
from icefield.cli.values import grid_cell
from icefield.history.diff import VersionDiff

Sample = Mapping[str, Sequence[Mapping[str, object]]]  # rows by `added` and `removed`
_SIGNS = {"added": "+", "removed": "-"}


def render_diff(name: str, found: VersionDiff, columns: Sequence[str], sample: Sample) -> str:
    """Return the page. sample: some rows that only one version has."""
    facts = found.as_dict()
    counts = [
        [kind.replace("-", " "), each["added"], each["removed"]]
        for kind in ("rows", "data-files", "delete-files")
        if isinstance(each := facts[kind], dict)
    ]
    changes = [
        [kind, word, line]
        for kind in ("columns", "properties")
        if isinstance(each := facts[kind], dict)
        for word, lines in each.items()
        for line in lines
    ]
    if (specs := found.partition_spec()) is not None:
        changes.append(["partition spec", "changed", f"{specs[0]} -> {specs[1]}"])
    rows = [[_SIGNS[word], *map(grid_cell, row.values())] for word in sample for row in sample[word]]
    parts = [table(["", "added", "removed"], counts)]
    parts += [section("Definition", table(["", "", ""], changes))] if changes else []
    by_partition = [[name, each["added"], each["removed"]] for name, each in found.partitions().items()]
    if by_partition:
        parts.append(section("Rows by partition", table(["", "added", "removed"], by_partition)))
    parts += [section("Rows", table(["", *columns], rows))] if rows else []
    return page(f"{name}: {facts['before'] or 'empty'} to {facts['after'] or 'empty'}", parts)
