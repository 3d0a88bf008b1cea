"""Tables of a REST catalog: load them, and commit changes to them. The server writes the metadata.

(rest-catalog-open-api.yaml: loadTable, updateTable, createTable, commitTransaction, reportMetrics)

Raises NoSuchTable, CommitConflict (a requirement no longer holds), CommitStateUnknown (the answer was
lost, or the server failed: look before doing anything), CatalogError.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.rest.http import Answer, Request
from icefield.catalog.rest.session import METRICS, RestSession, decode_answer
from icefield.codec.json.keys import Json
from icefield.codec.json.metadata import decode_metadata
from icefield.codec.json.schema import encode_schema, encode_sort_order, encode_spec
from icefield.codec.json.updates import encode_requirement, encode_update
from icefield.errors import CatalogError, CommitStateUnknown, IcefieldError, NoSuchNamespace, NoSuchTable
from icefield.model.creation import AssertCreate, TableUpdate
from icefield.model.last_added import mark_last_added
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.updates import Requirement

LOOKS_AT_MANY = 10
FORMAT_VERSION_PROPERTY = "format-version"


@dataclass(frozen=True)
class LoadedTable:
    """A table as the server returns it: its undecoded metadata, and the location of its metadata file."""

    location: str
    document: bytes = field(repr=False)

    def metadata(self) -> TableMetadata:
        """Decode the metadata."""
        return decode_metadata(self.document, self.location)


@dataclass(frozen=True)
class TableChange:
    """Updates to one table, and their requirements."""

    table: TableName
    requirements: Sequence[Requirement | AssertCreate]
    updates: Sequence[TableUpdate]

    def encode(self) -> Json:
        """Encode for the server. (rest-catalog-open-api.yaml: CommitTableRequest)"""
        return {
            "identifier": encode_identifier(self.table),
            "requirements": [encode_requirement(each) for each in self.requirements],
            "updates": [encode_update(each) for each in mark_last_added(self.updates)],
        }


class RestTables:
    """The tables of one REST catalog."""

    def __init__(self, session: RestSession) -> None:
        self._session = session
        # The entity tag of the newest known version of each table, and the metadata location that it belongs to.
        self._tags: dict[TableName, tuple[str, str]] = {}

    def load(self, table: TableName, known: str | None = None) -> LoadedTable | None:
        """Load a table; None if its metadata location has not changed."""
        location, tag = self._tags.get(table, (None, None))
        headers = {"If-None-Match": tag} if tag is not None and known == location else {}
        doing = f"load table {table}"
        answer = self._session.read_metadata(self._session.table_path(table), doing, NoSuchTable, headers=headers)
        if answer.status == 304:
            return None
        loaded = self._decode(table, answer, doing)
        return None if loaded.location == known else loaded

    def load_all(self, tables: Iterable[TableName]) -> dict[TableName, LoadedTable]:
        """Load several tables at one point in time, without those that do not exist.

        The protocol has no such request. All are loaded, and checked again: if none of them has moved, all of these
        versions were current between the first pass and the second.
        """
        names = list(dict.fromkeys(tables))
        found = {name: self._find(name, None) for name in names}
        for _ in range(LOOKS_AT_MANY):
            if len(names) == 1:
                break
            moved = {name: self._find(name, loaded) for name, loaded in found.items()}
            if all(moved[name] is loaded for name, loaded in found.items()):
                break
            found = moved
        else:
            raise CatalogError(
                f"cannot read {len(names)} tables at one point in time: other writers keep changing them"
            )
        return {name: loaded for name, loaded in found.items() if loaded is not None}

    def commit(self, change: TableChange, key: str | None) -> LoadedTable:
        """Commit to one table. key: the idempotency key, the same for every attempt at the same change."""
        doing = f"commit to {change.table}"
        request = Request("POST", self._session.table_path(change.table), headers=_key(key), body=change.encode())
        answer = self._session.commit(request, doing, NoSuchTable)
        try:
            return self._decode(change.table, answer, doing)
        except CatalogError as error:
            raise CommitStateUnknown(f"malformed response to the commit to {change.table}") from error

    def commit_all(self, changes: Sequence[TableChange], key: str | None) -> None:
        """Commit to several tables, all or none."""
        doing = f"commit to {', '.join(str(change.table) for change in changes)}"
        body = {"table-changes": [change.encode() for change in changes]}
        url = self._session.path("transactions", "commit")
        self._session.commit(Request("POST", url, headers=_key(key), body=body), doing, NoSuchTable)

    def stage(self, table: TableName, location: str | None, metadata: TableMetadata) -> TableMetadata:
        """Request the location and uuid of a new table without creating it. (createTable with stage-create)"""
        doing = f"create table {table}"
        body: Json = {
            "name": table.name,
            "schema": encode_schema(metadata.schema),
            "partition-spec": encode_spec(metadata.spec),
            "write-order": encode_sort_order(metadata.sort_order),
            "stage-create": True,
            "properties": {**metadata.properties, FORMAT_VERSION_PROPERTY: str(metadata.format_version)},
        }
        if location is not None:
            body["location"] = location
        url = self._session.namespace_path(table.namespace, "tables")
        try:
            answer = self._session.change(Request("POST", url, body=body), doing, NoSuchNamespace)
        except CommitStateUnknown as lost:
            raise CatalogError(lost.message) from lost  # nothing is made yet, whatever became of it
        staged = decode_metadata(bytes(decode_answer(answer.body, _Loaded, doing).metadata), doing)
        return replace(
            metadata,
            table_uuid=staged.table_uuid,
            location=staged.location,
            properties={**staged.properties, **metadata.properties},
        )

    def register(self, table: TableName, location: str) -> None:
        """Register an existing table in the catalog."""
        url = self._session.namespace_path(table.namespace, "register")
        body = {"name": table.name, "metadata-location": location}
        self._session.change(Request("POST", url, body=body), f"register table {table}", NoSuchNamespace)

    def drop(self, table: TableName) -> None:
        """Remove a table from the catalog; its files stay."""
        request = Request("DELETE", self._session.table_path(table), {"purgeRequested": "false"})
        self._session.change(request, f"drop table {table}", NoSuchTable)

    def report_metrics(self, table: TableName, report: Json) -> None:
        """Report a scan or a commit to the server, if it takes reports; errors are ignored."""
        if not self._session.supports(METRICS):
            return
        url = self._session.table_path(table, "metrics")
        try:
            self._session.change(Request("POST", url, body=report), f"report on {table}", NoSuchTable)
        except IcefieldError:
            return

    def _find(self, table: TableName, known: LoadedTable | None) -> LoadedTable | None:
        try:
            return self.load(table, known.location if known else None) or known
        except NoSuchTable:
            return None

    def _decode(self, table: TableName, answer: Answer, doing: str) -> LoadedTable:
        loaded = decode_answer(answer.body, _Loaded, doing)
        if loaded.metadata_location is None:
            raise CatalogError(f"cannot {doing}: the catalog does not say where its metadata is")
        tag = answer.headers.get("etag")
        if tag is not None:
            self._tags[table] = (loaded.metadata_location, tag)
        return LoadedTable(loaded.metadata_location, bytes(loaded.metadata))


def encode_identifier(name: TableName) -> Json:
    """Encode a name. (rest-catalog-open-api.yaml: TableIdentifier)"""
    return {"namespace": list(name.namespace), "name": name.name}


def new_key(ambient: Ambient) -> str:
    """Return an idempotency key for a change: a UUID of version 7, as the protocol requires. (RFC 9562, section 5.7)"""
    random = ambient.random_uuid().int & ((1 << 80) - 1)
    value = (ambient.now_ms() & ((1 << 48) - 1)) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=value & ~(0x3 << 62) | 0x2 << 62))


def _key(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


class _Loaded(msgspec.Struct, rename="kebab"):
    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, Any] | None = None
