"""The contracts of catalogs for those that cannot do all of it: their tests but for named gaps, on the usual tables."""

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType

from tests.catalog.test_catalog_contract import T, U
from tests.catalog.test_views import V

from icefield.catalog.catalog import Catalog, Kind, PointerSwap


def contract_of(module: ModuleType, gaps: Mapping[str, object]) -> dict[str, Callable[..., None]]:
    """Return the tests of a contract that have no gap and take a catalog."""
    found = {name: test for name, test in vars(module).items() if name.startswith("test_")}
    assert gaps.keys() <= found.keys(), "a gap names a test that is not there"
    return {
        name: test
        for name, test in found.items()
        if name not in gaps and {"empty", "catalog"} & inspect.signature(test).parameters.keys()
    }


def with_tables(empty: Catalog) -> Catalog:
    """Put two tables into a catalog, one swap each."""
    empty.create_namespace(("shop",))
    empty.swap([PointerSwap(T, None, "t0")])
    empty.swap([PointerSwap(U, None, "u0")])
    return empty


def with_view(empty: Catalog) -> Catalog:
    """Put a table and a view into a catalog, one swap each."""
    empty.create_namespace(("shop",))
    empty.swap([PointerSwap(T, None, "t0")])
    empty.swap([PointerSwap(V, None, "v0", Kind.VIEW)])
    return empty
