"""Report commits to a REST catalog. (rest-catalog-open-api.yaml: CommitReport)"""

from __future__ import annotations

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.catalog.rest.tables import RestTables
    from icefield.commit.operations.tables import Proposal
    from icefield.metrics import report_of_commit
    from icefield.model.updates import AddSnapshot


def report_commit(tables: RestTables, proposal: Proposal) -> None:
    """Report every snapshot of a commit."""
    for update in proposal.updates:
        if isinstance(update, AddSnapshot):
            tables.report_metrics(proposal.table, report_of_commit(str(proposal.table), update.snapshot).as_dict())
