"""Create a table: write its first metadata, and register it under an unused name.

A table may be staged first: it exists nowhere until it is created, possibly with its first rows, in one swap.

Raises AlreadyExists, Unsupported (format version), NoSuchNamespace, LocationRefused; no file is left behind then.
CommitStateUnknown: the response was lost, and the outcome is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from icefield.ambient import Ambient
from icefield.backend import Backend
from icefield.commit.action import Action, ProposedChange, WriteContext
from icefield.commit.actions.location import check_paths
from icefield.commit.attempt import begin_attempt
from icefield.commit.loop import NO_FILES, OwnFiles, propose_all
from icefield.commit.operations.choose import operations_of
from icefield.commit.operations.tables import PointerTableOperations, Proposal, TableVersion
from icefield.commit.validate.references import remove_quietly
from icefield.errors import AlreadyExists, CommitConflict, InvalidInput
from icefield.model.metadata import TableMetadata, check_format_version
from icefield.model.names import TableName
from icefield.model.partition import UNPARTITIONED, PartitionSpec
from icefield.model.sort_order import UNSORTED, SortOrder
from icefield.properties.check import check_properties
from icefield.properties.format_versions import FORMAT_VERSION
from icefield.types.datatypes import UnknownType
from icefield.types.schema import Schema, check_dotted_names
from icefield.types.versions import ADDED_IN, check_schema_version


@dataclass(frozen=True)
class TableDefinition:
    """The definition of a new table."""

    schema: Schema
    spec: PartitionSpec = UNPARTITIONED
    order: SortOrder = UNSORTED
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION


def stage_table(backend: Backend, name: TableName, location: str | None, definition: TableDefinition) -> TableMetadata:
    """Return the first metadata of a table at a new location; None if the catalog chooses it."""
    check_definition(definition)
    check_paths(definition.properties, backend.store)
    return operations_of(backend).stage(name, location, _first_metadata(definition, location or "", backend.ambient))


def create_table(
    backend: Backend, name: TableName, staged: TableMetadata, actions: Sequence[Action] = (), own: OwnFiles = NO_FILES
) -> TableVersion:
    """Create a staged table, with the result of actions; remove their files if it was certainly not created."""
    attempt = begin_attempt(backend.store)
    changes: list[ProposedChange] = []
    try:
        metadata = propose_all(actions, staged, WriteContext.of(backend, attempt.store), changes)
        return operations_of(backend).create(Proposal(name, TableVersion(staged, ""), changes, metadata), attempt)
    except BaseException as error:
        if not attempt.may_have_landed(error):
            reusable = [location for action in actions for location in action.reusable_files()]
            remove_quietly(backend.store, [*attempt.written, *own.locations, *reusable])
        if isinstance(error, CommitConflict):
            raise AlreadyExists(f"table {name} was concurrently created by another writer") from error
        raise


def register_table(
    backend: Backend, name: TableName, found: TableVersion, *, is_restored: bool = False
) -> TableVersion:
    """Register an existing table under a new name. is_restored: this catalog has dropped it."""
    attempt = begin_attempt(backend.store)
    try:
        return PointerTableOperations(backend).register(name, found, attempt, is_restored=is_restored)
    except BaseException as error:
        if not attempt.may_have_landed(error):
            remove_quietly(backend.store, attempt.written)
        raise


def check_definition(definition: TableDefinition) -> None:
    """Raise InvalidInput for an invalid definition."""
    check_format_version(definition.format_version, "the table to create")
    check_properties(definition.properties)
    if definition.format_version < ADDED_IN[UnknownType]:
        _check_types(definition.schema)
    check_schema_version(definition.schema, definition.format_version)
    check_dotted_names(definition.schema)


def _check_types(schema: Schema) -> None:
    for field_id, known in schema.by_id.items():
        if isinstance(known.type, UnknownType):
            raise InvalidInput(
                f"column {schema.name_of(field_id)!r} has no type: all its values are null",
                hint="Cast it to a type",
            )


def _first_metadata(definition: TableDefinition, location: str, ambient: Ambient) -> TableMetadata:
    schema = replace(definition.schema, schema_id=0)
    orders = (UNSORTED,) if definition.order.is_unsorted else (UNSORTED, definition.order)
    return TableMetadata(
        table_uuid=ambient.random_uuid(),
        location=location,
        last_updated_ms=ambient.now_ms(),
        last_column_id=schema.highest_field_id,
        schemas=(schema,),
        current_schema_id=0,
        format_version=definition.format_version,
        specs=(definition.spec,),
        last_partition_id=definition.spec.highest_field_id,
        sort_orders=orders,
        default_sort_order_id=definition.order.order_id,
        properties=dict(definition.properties),
    )
