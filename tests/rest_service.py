"""What the REST server of the tests does: Iceberg's REST operations over a memory catalog and a store.

The server side of the protocol, written with the parts that decide on our side too: `check`, `apply`, `create_from`.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec

from icefield.ambient import Ambient
from icefield.cache.reading import ReadContext
from icefield.catalog.catalog import Kind, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.codec.json.metadata import encode_metadata
from icefield.codec.json.schema import decode_schema, decode_sort_order, decode_spec
from icefield.codec.json.updates import decode_requirement, decode_update
from icefield.codec.json.view import decode_view_version, encode_view
from icefield.codec.json.view_updates import decode_view_update
from icefield.commit.action import WriteContext
from icefield.commit.load import load_table_metadata
from icefield.commit.operations.tables import next_metadata_name, write_metadata
from icefield.commit.operations.views import load_view_metadata
from icefield.errors import CommitConflict, InvalidInput
from icefield.model.apply import apply, check
from icefield.model.creation import AssertCreate, AssignUUID, TableUpdate, create_from
from icefield.model.last_added import resolve_last_added
from icefield.model.metadata import TableMetadata
from icefield.model.names import Namespace, TableName
from icefield.model.partition import UNPARTITIONED
from icefield.model.sort_order import UNSORTED
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icefield.model.view import SqlRepresentation, ViewDefinition, ViewMetadata, create_view
from icefield.model.view_updates import apply_view_updates
from icefield.storage.store import Store
from icefield.types.datatypes import LongType, NestedField
from icefield.types.schema import Schema

Json = dict[str, Any]
Changed = tuple[TableName, str | None, TableMetadata, bool]  # with where it was, and whether anything changed

_SCHEMA = Schema((NestedField(1, "id", LongType()),))
_PRETENDED_TABLE = encode_metadata(
    create_from(
        [
            AssignUUID(uuid4()),
            AddSchema(_SCHEMA),
            AddPartitionSpec(UNPARTITIONED),
            AddSortOrder(UNSORTED),
            SetLocation("x://x"),
        ],
        0,
    )
)
_PRETENDED_VIEW = encode_view(
    create_view(uuid4(), "x://x", ViewDefinition(_SCHEMA, (SqlRepresentation("SELECT 1", "spark"),), ("x",)), {}, 0)
)


@dataclass(frozen=True)
class Loaded:
    """A table or view, as the server answers with it."""

    location: str | None
    document: bytes

    def encode(self) -> Json:
        return {"metadata-location": self.location, "metadata": msgspec.Raw(self.document), "config": {}}


class RestService:
    """One catalog and its files."""

    def __init__(self, store: Store, warehouse: str, ambient: Ambient) -> None:
        self.catalog = MemoryCatalog()
        self.store = store
        self.warehouse = warehouse
        self.ambient = ambient
        self.reports: list[Json] = []
        self.pretends = False  # that there is a table or view behind every location that is registered
        self._pretended: dict[str, bytes] = {}
        self._lock = threading.RLock()

    def load_table(self, name: TableName) -> Loaded:
        location = self.catalog.pointer(name)
        return Loaded(location, self._pretended.get(location) or encode_metadata(self._read(location)))

    def create_table(self, namespace: Namespace, body: Json) -> Loaded:
        self.catalog.list_tables(namespace)
        name = TableName(namespace, body["name"])
        if self.catalog.find(name) is not None:
            self.catalog.swap([PointerSwap(name, None, "taken")])
        properties = dict(body.get("properties") or {})
        version = int(properties.pop("format-version", "2"))
        spec = decode_spec({"spec-id": 0, **body["partition-spec"]}) if body.get("partition-spec") else UNPARTITIONED
        order = decode_sort_order(body["write-order"]) if body.get("write-order") else UNSORTED
        updates: list[TableUpdate] = [
            AssignUUID(uuid4()),
            UpgradeFormatVersion(version),
            AddSchema(decode_schema(body["schema"])),
            AddPartitionSpec(spec),
            AddSortOrder(order),
            SetLocation(body.get("location") or self._place(name)),
            SetProperties(properties),
        ]
        metadata = create_from(updates, self.ambient.now_ms())
        if body.get("stage-create"):
            return Loaded(None, encode_metadata(metadata))
        return self._publish([(name, None, metadata, True)])[0]

    def commit(self, name: TableName, body: Json) -> Loaded:
        return self.commit_all([{**body, "identifier": {"namespace": list(name.namespace), "name": name.name}}])[0]

    def commit_all(self, changes: Sequence[Json]) -> list[Loaded]:
        with self._lock:
            return self._publish([self._changed(change) for change in changes])

    def register(self, namespace: Namespace, body: Json, kind: Kind) -> Loaded:
        name, location = TableName(namespace, body["name"]), body["metadata-location"]
        if self.pretends:
            self._pretended.setdefault(location, (_PRETENDED_TABLE, _PRETENDED_VIEW)[kind is Kind.VIEW])
            document = self._pretended[location]
        else:
            document = self.store.read(location)
        self.catalog.swap([PointerSwap(name, None, location, kind)])
        return Loaded(location, document)

    def drop(self, name: TableName, kind: Kind) -> None:
        self.catalog.swap([PointerSwap(name, self.catalog.pointer(name, kind), None, kind)])

    def load_view(self, name: TableName) -> Loaded:
        location = self.catalog.pointer(name, Kind.VIEW)
        pretended = self._pretended.get(location)
        return Loaded(location, pretended or encode_view(load_view_metadata(self.store, location)))

    def create_view(self, namespace: Namespace, body: Json) -> Loaded:
        name = TableName(namespace, body["name"])
        version = decode_view_version(msgspec.Raw(msgspec.json.encode(body["view-version"])))
        definition = ViewDefinition(
            decode_schema(body["schema"]),
            version.representations,
            version.default_namespace,
            version.default_catalog,
            version.summary,
        )
        location = body.get("location") or self._place(name)
        metadata = create_view(uuid4(), location, definition, body["properties"], self.ambient.now_ms())
        return self._publish_view(name, None, metadata)

    def commit_view(self, name: TableName, body: Json) -> Loaded:
        with self._lock:
            location = self.catalog.pointer(name, Kind.VIEW)
            base = load_view_metadata(self.store, location)
            for requirement in body.get("requirements", []):
                if requirement["type"] != "assert-view-uuid":
                    raise InvalidInput(f"unknown requirement {requirement['type']}")
                if requirement["uuid"] != str(base.view_uuid):
                    raise CommitConflict(f"the view's uuid is {base.view_uuid}")
            updates = [decode_view_update(update) for update in body["updates"]]
            return self._publish_view(name, location, apply_view_updates(base, updates, self.ambient.now_ms()))

    def _changed(self, change: Json) -> Changed:
        name = TableName(tuple(change["identifier"]["namespace"]), change["identifier"]["name"])
        requirements = [decode_requirement(each) for each in change["requirements"]]
        updates = resolve_last_added([decode_update(each) for each in change["updates"]])
        now_ms = self.ambient.now_ms()
        if AssertCreate() in requirements:
            if self.catalog.find(name) is not None:
                raise CommitConflict(f"{name} already exists")
            return name, None, create_from(updates, now_ms), True
        location = self.catalog.pointer(name)
        base = self._read(location)
        check(base, [each for each in requirements if not isinstance(each, AssertCreate)])
        rest = [update for update in updates if not isinstance(update, AssignUUID)]
        return name, location, apply(base, rest, now_ms) if rest else base, bool(rest)

    def _publish(self, tables: Sequence[Changed]) -> list[Loaded]:
        swaps, made = [], []
        for name, location, metadata, is_new in tables:
            new = self._write(metadata, location) if is_new else location
            swaps.append(PointerSwap(name, location, new))
            made.append(Loaded(new, encode_metadata(metadata)))
        self.catalog.swap(swaps)
        return made

    def _publish_view(self, name: TableName, previous: str | None, metadata: ViewMetadata) -> Loaded:
        file_name = next_metadata_name(previous, WriteContext(self.store, self.ambient))
        location = f"{metadata.location}/metadata/{file_name}.metadata.json"
        document = encode_view(metadata)
        self.store.put_new(location, document)
        self.catalog.swap([PointerSwap(name, previous, location, Kind.VIEW)])
        return Loaded(location, document)

    def _write(self, metadata: TableMetadata, previous: str | None) -> str:
        context = WriteContext(self.store, self.ambient)
        return write_metadata(metadata, next_metadata_name(previous, context), context)

    def _read(self, location: str) -> TableMetadata:
        return load_table_metadata(ReadContext(self.store), location)

    def _place(self, name: TableName) -> str:
        return "/".join([self.warehouse, *name.namespace, f"{name.name}-{uuid4().hex[:8]}"])
