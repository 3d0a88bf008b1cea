"""The contracts of every catalog and of every catalog with views, on an S3 server and on a local directory.

Tests that move several pointers at once are gaps. Each of them is run all the same, and must end with the catalog's
saying so before any work; a gap that was closed fails here until it is taken off the list.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.catalog import test_catalog_contract, test_views
from tests.catalog.contracts import contract_of, with_tables, with_view
from tests.catalog.test_catalog_contract import GOOD, T, U, state
from tests.catalog.test_swap_race import INCREMENTS, WORKERS, race_threads
from tests.catalog.test_swap_race import test_of_racing_creations_one_wins as race_creations
from tests.catalog.test_views import V
from tests.s3_server import s3_server

from icefield.catalog.catalog import Catalog, Kind, PointerSwap
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import CommitConflict, NamespaceNotEmpty, NoSuchNamespace, Unsupported
from icefield.model.names import parse_table_name
from icefield.storage.location import location_of_path
from icefield.storage.object_store.directory import DirectoryStore
from icefield.storage.object_store.store import ObjectStore

TABLE_GAPS: dict[str, tuple[object, ...]] = {
    "test_several_pointers_move_together_or_not_at_all": (PointerSwap(T, "stale", "t1"), CommitConflict),
    "test_a_pointer_that_must_only_stay_is_checked_and_left": (),
    "test_a_drop_and_a_create_may_share_a_swap_in_any_order": (),
    "test_tables_are_listed_in_order_by_their_namespace_alone": (),
    "test_a_namespace_is_dropped_only_when_nothing_is_in_it": (),
}
VIEW_GAPS: dict[str, tuple[object, ...]] = {
    "test_a_view_has_a_pointer_that_swaps_move": (),
    "test_several_pointers_move_together_or_not_at_all": (),
}


def s3_catalog(path: Path) -> ObjectStoreCatalog:
    return ObjectStoreCatalog(ObjectStore(s3_server().properties), s3_server().new_root())


def directory_catalog(path: Path) -> ObjectStoreCatalog:
    return ObjectStoreCatalog(DirectoryStore(durable=False), location_of_path(str(path / "catalog")))


@pytest.fixture(params=[s3_catalog, directory_catalog])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    make: Callable[[Path], Catalog] = request.param
    return make(tmp_path)


class TestTables:
    """The contract of tables."""

    @pytest.fixture
    def catalog(self, empty: Catalog) -> Catalog:
        return with_tables(empty)

    @pytest.mark.parametrize("name", TABLE_GAPS)
    def test_a_gap_is_said_before_any_work(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(Unsupported, match="several tables at once"):
            getattr(test_catalog_contract, name)(catalog, *TABLE_GAPS[name])
        assert state(catalog) == {"shop.orders": "t0", "shop.stock": "u0"}

    @pytest.mark.parametrize("order", [GOOD, GOOD[::-1]])
    def test_several_pointers_do_not_move(self, catalog: Catalog, order: tuple[PointerSwap, ...]) -> None:
        with pytest.raises(Unsupported, match="several tables at once") as refused:
            catalog.swap(order)
        assert refused.value.cleanable
        assert state(catalog) == {"shop.orders": "t0", "shop.stock": "u0"}

    def test_a_pointer_that_must_only_stay_is_checked(self, catalog: Catalog) -> None:
        catalog.swap([PointerSwap(T, "t0", "t0")])
        with pytest.raises(CommitConflict):
            catalog.swap([PointerSwap(T, "stale", "stale")])

    def test_tables_are_listed_by_their_namespace_alone(self, catalog: Catalog) -> None:
        catalog.create_namespace(("shop", "inner"))
        catalog.create_namespace(("sho",))
        for name in ("shop.inner.a", "sho.b", "shop.aaa"):
            catalog.swap([PointerSwap(parse_table_name(name), None, "x")])
        assert [str(table) for table in catalog.list_tables(("shop",))] == ["shop.aaa", "shop.orders", "shop.stock"]
        assert [str(table) for table in catalog.list_tables(("shop", "inner"))] == ["shop.inner.a"]
        for missing in (("no",), (), ("shop/inner",)):
            with pytest.raises(NoSuchNamespace):
                catalog.list_tables(missing)

    def test_a_namespace_is_dropped_only_when_nothing_is_in_it(self, catalog: Catalog) -> None:
        catalog.swap([PointerSwap(T, "t0", None)])
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace(("shop",))
        catalog.swap([PointerSwap(U, "u0", None)])
        assert catalog.list_namespaces() == [("shop",)]
        catalog.drop_namespace(("shop",))
        assert catalog.list_namespaces() == []
        for missing in (("shop",), ()):
            with pytest.raises(NoSuchNamespace):
                catalog.drop_namespace(missing)


class TestViews:
    """The contract of views."""

    @pytest.fixture
    def catalog(self, empty: Catalog) -> Catalog:
        return with_view(empty)

    @pytest.mark.parametrize("name", VIEW_GAPS)
    def test_a_gap_is_said_before_any_work(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(Unsupported, match="several tables at once"):
            getattr(test_views, name)(catalog)
        test_views.check_untouched(catalog)

    def test_a_view_has_a_pointer_that_swaps_move(self, catalog: Catalog) -> None:
        catalog.swap([PointerSwap(V, "v0", "v1", Kind.VIEW)])
        with pytest.raises(CommitConflict):
            catalog.swap([PointerSwap(V, "v0", "v2", Kind.VIEW)])
        assert catalog.pointer(V, Kind.VIEW) == "v1"
        catalog.swap([PointerSwap(V, "v1", None, Kind.VIEW)])
        assert catalog.find(V) is None


for group, module, gaps in ((TestTables, test_catalog_contract, TABLE_GAPS), (TestViews, test_views, VIEW_GAPS)):
    for title, check in contract_of(module, gaps).items():
        setattr(group, title, staticmethod(check))


@pytest.mark.slow
def test_racing_threads_lose_no_increment(empty: Catalog) -> None:
    assert race_threads(empty) == WORKERS * INCREMENTS


def test_of_racing_creations_one_wins(empty: Catalog) -> None:
    race_creations(empty)
