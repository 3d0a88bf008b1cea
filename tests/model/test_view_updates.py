"""Changes of a view, derived from before and after, and made again."""

import uuid

import pytest

from icefield.errors import InvalidInput
from icefield.model.creation import AssignUUID
from icefield.model.updates import AddSchema, RemoveProperties, SetLocation, SetProperties, UpgradeFormatVersion
from icefield.model.view import (
    SqlRepresentation,
    ViewDefinition,
    ViewMetadata,
    create_view,
    replace_version,
    set_properties,
)
from icefield.model.view_updates import (
    AddViewVersion,
    SetCurrentViewVersion,
    apply_view_updates,
    find_view_updates,
)
from icefield.types.datatypes import LongType, NestedField
from icefield.types.schema import Schema


def definition(sql: str, column: str = "x") -> ViewDefinition:
    return ViewDefinition(
        Schema((NestedField(1, column, LongType()),)), (SqlRepresentation(sql, "spark"),), ("a",), summary={"by": "us"}
    )


def view() -> ViewMetadata:
    return create_view(uuid.UUID(int=1), "x://v", definition("SELECT 1"), {"k": "v"}, 1)


def kinds(base: ViewMetadata, wanted: ViewMetadata) -> list[type]:
    return [type(update) for update in find_view_updates(base, wanted)]


def test_each_change_is_told_and_made_again() -> None:
    base = view()
    query = replace_version(base, definition("SELECT 2"), 2)
    columns = replace_version(query, definition("SELECT 3", "y"), 3)
    back = replace_version(columns, definition("SELECT 1"), 4)
    properties = set_properties(back, {"n": "1"}, ["k"])
    steps = [
        (base, query, [AddViewVersion, SetCurrentViewVersion]),
        (query, columns, [AddSchema, AddViewVersion, SetCurrentViewVersion]),
        (columns, back, [SetCurrentViewVersion]),
        (back, properties, [SetProperties, RemoveProperties]),
        (base, base, []),
    ]
    for number, (before, after, expected) in enumerate(steps, 2):
        assert kinds(before, after) == expected
        assert apply_view_updates(before, find_view_updates(before, after), number) == after


def test_updates_that_do_not_fit_are_refused() -> None:
    base = view()
    assert apply_view_updates(base, [AssignUUID(base.view_uuid), UpgradeFormatVersion(1)], 1) == base
    assert apply_view_updates(base, [SetLocation("x://w/")], 1).location == "x://w"
    for wrong in (AssignUUID(uuid.UUID(int=2)), UpgradeFormatVersion(2), SetCurrentViewVersion(9)):
        with pytest.raises(InvalidInput):
            apply_view_updates(base, [wrong], 1)
    lost = find_view_updates(base, replace_version(base, definition("SELECT 3", "y"), 3))[1:]
    with pytest.raises(InvalidInput, match="no schema with id -1"):
        apply_view_updates(base, lost, 3)
