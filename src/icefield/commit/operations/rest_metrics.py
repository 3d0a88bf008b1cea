"""Report commits to a REST catalog. (rest-catalog-open-api.yaml: CommitReport)"""

from icefield.arguments import whole_number
from icefield.catalog.rest.tables import RestTables
from icefield.commit.operations.tables import Proposal
from icefield.model.snapshot import Snapshot
from icefield.model.updates import AddSnapshot

# The counts that a summary and a report share, under one name.
COUNTERS = (
    "added-data-files",
    "total-data-files",
    "added-delete-files",
    "total-delete-files",
    "added-records",
    "total-records",
)


def report_commit(tables: RestTables, proposal: Proposal) -> None:
    """Report every snapshot of a commit."""
    for update in proposal.updates:
        if isinstance(update, AddSnapshot):
            tables.report_metrics(proposal.table, _encode(str(proposal.table), update.snapshot))


def _encode(table: str, snapshot: Snapshot) -> dict[str, object]:
    read = {key: whole_number(snapshot.summary.get(key)) for key in COUNTERS}
    counted = {key: count for key, count in read.items() if count is not None}
    return {
        "report-type": "commit-report",
        "table-name": table,
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number,
        "operation": snapshot.operation or "",
        "metrics": {key: {"unit": "count", "value": count} for key, count in counted.items()},
    }
