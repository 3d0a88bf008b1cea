"""View metadata: versions are added, reused and dropped as Iceberg's own library does it."""

from dataclasses import replace
from uuid import UUID

import pytest

from icefield.errors import InvalidInput
from icefield.model.view import (
    SqlRepresentation,
    ViewDefinition,
    ViewMetadata,
    create_view,
    replace_version,
    set_properties,
)
from icefield.types.text import parse_schema

SCHEMA = parse_schema("id long, name string")


def definition(sql: str, dialect: str = "spark", columns: str = "id long") -> ViewDefinition:
    return ViewDefinition(parse_schema(columns), (SqlRepresentation(sql, dialect),), ("shop",))


def made() -> ViewMetadata:
    return create_view(UUID(int=1), "memory://v", definition("SELECT 1"), {}, 100)


def log(metadata: ViewMetadata) -> list[tuple[int, int]]:
    return [(entry.timestamp_ms, entry.version_id) for entry in metadata.version_log]


def test_a_new_view_has_version_1_and_schema_0() -> None:
    view = made()
    assert (view.current_version_id, view.current_version.schema_id, view.current_version.timestamp_ms) == (1, 0, 100)
    assert log(view) == [(100, 1)]
    assert view.current_version.find_sql("spark") == "SELECT 1"


def test_a_replacement_adds_a_version_and_keeps_the_old() -> None:
    view = replace_version(made(), definition("SELECT 2"), 200)
    assert [v.find_sql("spark") for v in view.versions] == ["SELECT 1", "SELECT 2"]
    assert (view.current_version_id, log(view)) == (2, [(100, 1), (200, 2)])
    assert len(view.schemas) == 1


def test_other_columns_are_another_schema() -> None:
    view = replace_version(made(), definition("SELECT 2", columns="id long, n int"), 200)
    assert [s.schema_id for s in view.schemas] == [0, 1]
    assert [f.name for f in view.schema.fields] == ["id", "n"]


def test_the_same_definition_changes_nothing() -> None:
    view = made()
    assert replace_version(view, definition("SELECT 1"), 200) == view
    by_another = replace(definition("SELECT 1"), summary={"engine-name": "other"})
    assert replace_version(view, by_another, 200) == view


def test_a_definition_of_old_is_pointed_at_again() -> None:
    view = replace_version(replace_version(made(), definition("SELECT 2"), 200), definition("SELECT 1"), 300)
    assert (view.current_version_id, len(view.versions)) == (1, 2)
    assert log(view) == [(100, 1), (200, 2), (300, 1)]


def test_old_versions_are_let_go_with_the_log_before_them() -> None:
    view = set_properties(made(), {"version.history.num-entries": "2"})
    view = replace_version(view, definition("SELECT 2"), 200)
    view = replace_version(view, definition("SELECT 1"), 300)
    view = replace_version(view, definition("SELECT 3"), 400)
    assert [v.version_id for v in view.versions] == [2, 3]
    assert log(view) == [(400, 3)]  # the entry of version 1 at 300 cuts off what is before it


def test_ten_versions_are_kept_by_default() -> None:
    view = made()
    for number in range(2, 16):
        view = replace_version(view, definition(f"SELECT {number}"), 100 * number)
    assert [v.version_id for v in view.versions] == list(range(6, 16))
    assert [version_id for _, version_id in log(view)] == list(range(6, 16))


def test_a_dialect_is_lost_only_on_purpose() -> None:
    view = create_view(UUID(int=1), "memory://v", definition("SELECT 1", "Trino"), {}, 100)
    with pytest.raises(InvalidInput, match="query in trino"):
        replace_version(view, definition("SELECT 2"), 200)
    allowed = set_properties(view, {"replace.drop-dialect.allowed": "true"})
    assert replace_version(allowed, definition("SELECT 2"), 200).current_version.dialects == ("spark",)


def test_definitions_and_properties_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one query per dialect"):
        ViewDefinition(SCHEMA, (SqlRepresentation("a", "spark"), SqlRepresentation("b", "SPARK")), ())
    with pytest.raises(InvalidInput, match="needs a query"):
        ViewDefinition(SCHEMA, (), ())
    with pytest.raises(InvalidInput, match="at least 1"):
        set_properties(made(), {"version.history.num-entries": "0"})
    with pytest.raises(InvalidInput, match="strings"):
        set_properties(made(), {"a": 1})  # type: ignore[dict-item]


def test_properties_are_set_and_removed() -> None:
    view = set_properties(set_properties(made(), {"a": "1", "b": "2"}), {"c": "3"}, ["a"])
    assert dict(view.properties) == {"b": "2", "c": "3"}
