"""The contract of every catalog with views, run by each that can hold them; one that cannot says so."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from tests.catalog.test_catalog_contract import CATALOGS_WITH_VIEWS, V0_CATALOGS

from icefield.catalog.catalog import Catalog, Entry, Kind, PointerSwap
from icefield.errors import (
    AlreadyExists,
    CommitConflict,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    Unsupported,
)
from icefield.model.names import parse_table_name

T, V, NEW = (parse_table_name(f"shop.{name}") for name in ("orders", "recent", "new"))


def view_swap(expected: str | None, new: str | None) -> PointerSwap:
    return PointerSwap(V, expected, new, Kind.VIEW)


@pytest.fixture(params=CATALOGS_WITH_VIEWS)
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    make: Callable[[pytest.FixtureRequest], Catalog] = request.param
    with closing(make(request)) as made:
        made.create_namespace(("shop",))
        made.swap([PointerSwap(T, None, "t0"), view_swap(None, "v0")])
        yield made


def check_untouched(catalog: Catalog) -> None:
    assert catalog.find(T) == Entry(Kind.TABLE, "t0")
    assert catalog.find(V) == Entry(Kind.VIEW, "v0")


def test_a_view_has_a_pointer_that_swaps_move(catalog: Catalog) -> None:
    assert catalog.pointer(V, Kind.VIEW) == "v0"
    catalog.swap([view_swap("v0", "v1"), PointerSwap(T, "t0", "t1")])
    assert (catalog.pointer(V, Kind.VIEW), catalog.pointer(T)) == ("v1", "t1")
    with pytest.raises(CommitConflict):
        catalog.swap([view_swap("v0", "v2")])
    catalog.swap([view_swap("v1", None)])
    assert catalog.find(V) is None


def test_tables_and_views_are_listed_apart(catalog: Catalog) -> None:
    assert catalog.list_tables(("shop",)) == [T]
    assert catalog.list_views(("shop",)) == [V]
    assert catalog.pointers([T, V]) == {T: "t0"}
    with pytest.raises(NoSuchNamespace):
        catalog.list_views(("no",))


def test_a_name_stands_for_one_thing(catalog: Catalog) -> None:
    with pytest.raises(AlreadyExists, match="already used by a view"):
        catalog.swap([PointerSwap(V, None, "t")])
    with pytest.raises(AlreadyExists, match="already used by a table"):
        catalog.swap([PointerSwap(T, None, "v", Kind.VIEW)])
    with pytest.raises(AlreadyExists, match="already used by a view"):
        catalog.rename_table(T, V)
    with pytest.raises(AlreadyExists, match="already used by a table"):
        catalog.rename_view(V, T)
    check_untouched(catalog)


def test_what_asks_for_the_one_finds_no_other(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable, match="is a view, not a table"):
        catalog.pointer(V)
    with pytest.raises(NotFound, match="is a table, not a view"):
        catalog.pointer(T, Kind.VIEW)
    for change in (PointerSwap(V, "v0", "v1"), PointerSwap(V, "v0", None)):
        with pytest.raises(NoSuchTable, match="is a view"):
            catalog.swap([change])
    for change in (PointerSwap(T, "t0", "t1", Kind.VIEW), PointerSwap(T, "t0", None, Kind.VIEW)):
        with pytest.raises(NotFound, match="is a table"):
            catalog.swap([change])
    with pytest.raises(NoSuchTable, match="is a view"):
        catalog.rename_table(V, NEW)
    with pytest.raises(NotFound, match="is a table"):
        catalog.rename_view(T, NEW)
    with pytest.raises(NotFound, match="there is no view"):
        catalog.pointer(NEW, Kind.VIEW)
    check_untouched(catalog)


def test_several_pointers_move_together_or_not_at_all(catalog: Catalog) -> None:
    with pytest.raises(CommitConflict):
        catalog.swap([PointerSwap(T, "t0", "t1"), view_swap("stale", "v1")])
    with pytest.raises(NoSuchNamespace):
        catalog.swap([view_swap("v0", "v1"), PointerSwap(parse_table_name("no.x"), None, "x", Kind.VIEW)])
    check_untouched(catalog)


def test_a_renamed_view_keeps_its_pointer(catalog: Catalog) -> None:
    catalog.rename_view(V, NEW)
    assert catalog.find(NEW) == Entry(Kind.VIEW, "v0")
    assert catalog.find(V) is None
    with pytest.raises(NoSuchNamespace):
        catalog.rename_view(NEW, parse_table_name("no.x"))


def test_a_namespace_with_a_view_is_not_empty(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", None)])
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(("shop",))
    catalog.swap([view_swap("v0", None)])
    catalog.drop_namespace(("shop",))


@pytest.mark.parametrize("make", V0_CATALOGS)
def test_a_database_from_before_there_were_views_refuses_them(
    make: Callable[[pytest.FixtureRequest], Catalog], request: pytest.FixtureRequest
) -> None:
    with closing(make(request)) as catalog:
        catalog.create_namespace(("shop",))
        with pytest.raises(Unsupported, match="jdbc.schema-version=V1"):
            catalog.swap([PointerSwap(T, None, "t0"), view_swap(None, "v0")])
        assert catalog.find(T) is None
        assert catalog.list_views(("shop",)) == []
