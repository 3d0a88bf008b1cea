"""Branches and tags: ALTER TABLE ... CREATE, REPLACE and DROP BRANCH and TAG.

    CREATE OR REPLACE BRANCH audit AS OF VERSION 12 RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS

A version is a snapshot id, or the name of a branch or tag as a text.
Raises AlreadyExists, NoSuchSnapshot, InvalidInput.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.errors import IcefieldError, InvalidInput, NoSuchSnapshot
from icefield.model.snapshot import RefKind
from icefield.plan.versions import AsOf
from icefield.sql.schema.change import find_table
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, point_at, pointing_at
from icefield.table.table import Table

_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}
REF_WORDS = tuple(str(kind) for kind in RefKind)


@dataclass(frozen=True)
class RefName:
    """A branch or a tag of a table."""

    table: Name
    kind: RefKind
    name: str
    place: Place

    def open(self, run: Run) -> Table:
        """Open the table."""
        return run.open(find_table(run, self.table))

    def exists(self, table: Table) -> bool:
        """Return whether the table has a branch or tag of this name."""
        try:
            table.at(self.name)
        except NoSuchSnapshot:
            return False
        return True


@dataclass(frozen=True)
class CreateRef:
    """CREATE BRANCH and TAG, REPLACE, and CREATE OR REPLACE.

    at: the version, and where it is written. creates: one that does not exist may be created.
    """

    ref: RefName
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False
    at: AsOf | None = None
    at_place: Place | None = None
    retention: Mapping[str, int] = field(default_factory=dict)

    def run(self, run: Run) -> Rows:
        """Create or replace it."""
        table, ref = self.ref.open(run), self.ref
        if self.if_not_exists and ref.exists(table):
            return NOTHING
        if not self.creates and not ref.exists(table):
            raise ref.place.error(f"the table has no {ref.kind} {ref.name!r}", kind=NoSuchSnapshot)
        create = table.create_branch if ref.kind is RefKind.BRANCH else table.create_tag
        try:
            create(ref.name, at=self.at, replace=self.replaces, dry_run=False, **self.retention)
        except IcefieldError as error:
            place = self.at_place if isinstance(error, NoSuchSnapshot) else None
            point_at(error, place or ref.place)
            raise
        return NOTHING


@dataclass(frozen=True)
class DropRef:
    """DROP BRANCH and TAG."""

    ref: RefName
    if_exists: bool

    def run(self, run: Run) -> Rows:
        """Drop it."""
        table, ref = self.ref.open(run), self.ref
        if self.if_exists and not ref.exists(table):
            return NOTHING
        with pointing_at(ref.place):
            (table.drop_branch if ref.kind is RefKind.BRANCH else table.drop_tag)(ref.name)
        return NOTHING


def parse_create_ref(cursor: Cursor, table: Name) -> CreateRef:
    """Parse what follows the name of the table: CREATE, REPLACE or CREATE OR REPLACE."""
    creates = cursor.accept("create")
    replaces = not creates or cursor.accept("or")
    if replaces:
        cursor.expect("replace")
    kind = RefKind(cursor.expect_any(*REF_WORDS))
    if_not_exists = not replaces and cursor.accept("if", "not", "exists")
    ref = _ref(cursor, table, kind)
    at, at_place = _version(cursor)
    retention: dict[str, int] = {}
    if cursor.accept("retain"):
        retention["max_ref_age_ms"] = _duration_ms(cursor)
    if kind is RefKind.BRANCH and cursor.accept("with", "snapshot", "retention"):
        retention |= _snapshot_retention(cursor)
    cursor.expect_end()
    return CreateRef(ref, if_not_exists, creates, replaces, at, at_place, retention)


def parse_drop_ref(cursor: Cursor, table: Name) -> DropRef:
    """Parse DROP BRANCH or TAG, after the name of the table."""
    cursor.expect("drop")
    kind = RefKind(cursor.expect_any(*REF_WORDS))
    if_exists = cursor.accept("if", "exists")
    ref = _ref(cursor, table, kind)
    cursor.expect_end()
    return DropRef(ref, if_exists)


def _ref(cursor: Cursor, table: Name, kind: RefKind) -> RefName:
    place = cursor.place
    return RefName(table, kind, cursor.identifier(f"the name of a {kind}"), place)


def _version(cursor: Cursor) -> tuple[AsOf | None, Place | None]:
    if not cursor.accept("as", "of"):
        return None, None
    cursor.expect("version")
    place = cursor.place
    if cursor.is_at_parameter:
        value = cursor.parameter()
        if type(value) not in (int, str):
            raise place.error(f"a version is a snapshot id or the name of a ref, not {value!r}", kind=InvalidInput)
        return value, place
    token = cursor.token()
    is_text = token is not None and token.text[:1] in "'\""
    return cursor.string() if is_text else cursor.integer("a snapshot id, or the name of a branch or tag"), place


def _snapshot_retention(cursor: Cursor) -> dict[str, int]:
    found: dict[str, int] = {}
    place, number = cursor.place, cursor.integer("a number of snapshots or of days")
    if cursor.accept("snapshots"):
        found["min_snapshots_to_keep"] = _positive(number, place)
        if cursor.is_at_end:
            return found
        place, number = cursor.place, cursor.integer("a number of days, hours or minutes")
    found["max_snapshot_age_ms"] = _positive(number, place) * _unit_ms(cursor)
    return found


def _duration_ms(cursor: Cursor) -> int:
    place, number = cursor.place, cursor.integer("a number of days, hours or minutes")
    return _positive(number, place) * _unit_ms(cursor)


def _unit_ms(cursor: Cursor) -> int:
    return _UNITS_MS[cursor.expect_any(*_UNITS_MS)]


def _positive(number: int, place: Place) -> int:
    if number < 1:
        raise place.error(f"expected a number of at least 1, got {number}", kind=InvalidInput)
    return number
