"""The contracts of every catalog and of every catalog with views, through the REST client and a server.

Tests that move pointers are gaps: a REST server writes metadata itself. Each of them is run all the same, and must end
with the catalog's saying so; a gap that was closed fails here until it is taken off the list. What moves tables and
views on a REST catalog is tested in test_rest_commit.py and test_rest_views.py.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.catalog import test_catalog_contract, test_views
from tests.catalog.contracts import contract_of, with_tables, with_view
from tests.catalog.test_catalog_contract import T, U
from tests.rest_server import running_server

from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.rest.catalog import open_rest_catalog
from icefield.errors import CommitConflict, NamespaceNotEmpty, NoSuchNamespace, Unsupported
from icefield.model.names import parse_table_name
from icefield.storage.memory import MemoryStore

TABLE_GAPS: dict[str, tuple[object, ...]] = {
    "test_a_swap_moves_a_pointer": (),
    "test_a_stale_expectation_is_a_conflict_that_names_both_pointers": (),
    "test_several_pointers_move_together_or_not_at_all": (PointerSwap(T, "stale", "t1"), CommitConflict),
    "test_a_pointer_that_must_only_stay_is_checked_and_left": (),
    "test_a_drop_and_a_create_may_share_a_swap_in_any_order": (),
    "test_tables_are_listed_in_order_by_their_namespace_alone": (),
    "test_a_namespace_is_dropped_only_when_nothing_is_in_it": (),
    "test_a_renamed_table_keeps_its_pointer": (),
    "test_a_fenced_write_is_never_swapped": (),
    "test_a_fence_holds_after_a_rename": (),
}
VIEW_GAPS: dict[str, tuple[object, ...]] = {
    "test_a_view_has_a_pointer_that_swaps_move": (),
    "test_several_pointers_move_together_or_not_at_all": (),
}


@pytest.fixture
def empty() -> Iterator[Catalog]:
    with running_server(MemoryStore(), "memory://lake") as server:
        server.service.pretends = True
        with closing(open_rest_catalog(server.url)) as catalog:
            yield catalog


class TestTables:
    """The contract of tables."""

    @pytest.fixture
    def catalog(self, empty: Catalog) -> Catalog:
        return with_tables(empty)

    @pytest.mark.parametrize("name", TABLE_GAPS)
    def test_a_gap_is_said(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(Unsupported, match="moves no pointers"):
            getattr(test_catalog_contract, name)(catalog, *TABLE_GAPS[name])

    def test_a_stale_expectation_is_a_conflict(self, catalog: Catalog) -> None:
        for new in ("t1", "older", None):
            with pytest.raises(CommitConflict, match="from older to t0"):
                catalog.swap([PointerSwap(T, "older", new)])
        catalog.swap([PointerSwap(T, "t0", "t0")])

    def test_tables_are_listed_by_their_namespace_alone(self, catalog: Catalog) -> None:
        catalog.create_namespace(("shop", "inner"))
        for name in ("shop.inner.a", "shop.aaa"):
            catalog.swap([PointerSwap(parse_table_name(name), None, "x")])
        assert [str(table) for table in catalog.list_tables(("shop",))] == ["shop.aaa", "shop.orders", "shop.stock"]
        for missing in (("no",), ()):
            with pytest.raises(NoSuchNamespace):
                catalog.list_tables(missing)

    def test_a_namespace_is_dropped_only_when_nothing_is_in_it(self, catalog: Catalog) -> None:
        catalog.swap([PointerSwap(T, "t0", None)])
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace(("shop",))
        catalog.swap([PointerSwap(U, "u0", None)])
        catalog.drop_namespace(("shop",))
        for missing in (("shop",), ()):
            with pytest.raises(NoSuchNamespace):
                catalog.drop_namespace(missing)

    def test_a_renamed_table_keeps_its_pointer(self, catalog: Catalog) -> None:
        catalog.create_namespace(("other",))
        moved = parse_table_name("other.sales")
        catalog.rename_table(T, moved)
        catalog.rename_table(moved, moved)
        assert (catalog.pointer(moved), catalog.find(T)) == ("t0", None)


class TestViews:
    """The contract of views."""

    @pytest.fixture
    def catalog(self, empty: Catalog) -> Catalog:
        return with_view(empty)

    @pytest.mark.parametrize("name", VIEW_GAPS)
    def test_a_gap_is_said(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(Unsupported, match="moves no pointers"):
            getattr(test_views, name)(catalog)
        test_views.check_untouched(catalog)


for group, module, gaps in ((TestTables, test_catalog_contract, TABLE_GAPS), (TestViews, test_views, VIEW_GAPS)):
    for title, check in contract_of(module, gaps).items():
        if not hasattr(group, title):
            setattr(group, title, staticmethod(check))
