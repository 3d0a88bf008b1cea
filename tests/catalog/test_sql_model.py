"""The SQL catalog answers every sequence of calls as the memory catalog does."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.postgres import PostgresServer

from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import SqliteSettings, open_sqlite_catalog
from icefield.errors import IcefieldError
from icefield.model.names import TableName

Call = Callable[[Catalog], object]

NAMESPACES = st.sampled_from([("a",), ("A",), ("a", "b"), ("a_b",), ("aXb",), ("a_b", "c"), ("a%",)])
TABLES = st.builds(TableName, NAMESPACES, st.sampled_from(["t", "T", "u"]))
POINTERS = st.sampled_from([None, "1", "2", "3"])
PROPERTIES = st.dictionaries(st.sampled_from(["k", "K", "l"]), st.sampled_from(["", "v"]), max_size=2)
CHANGES = st.lists(st.builds(PointerSwap, TABLES, POINTERS, POINTERS), max_size=3)

CALLS: st.SearchStrategy[Call] = st.one_of(
    CHANGES.map(lambda changes: lambda catalog: catalog.swap(changes)),
    st.builds(lambda name, new: lambda catalog: catalog.rename_table(name, new), TABLES, TABLES),
    st.builds(lambda name, values: lambda catalog: catalog.create_namespace(name, values), NAMESPACES, PROPERTIES),
    NAMESPACES.map(lambda name: lambda catalog: catalog.drop_namespace(name)),
    st.builds(
        lambda name, gone, values: lambda catalog: catalog.update_namespace_properties(name, gone, values),
        NAMESPACES,
        st.lists(st.sampled_from(["k", "K", "l"]), max_size=2),
        PROPERTIES,
    ),
    NAMESPACES.map(lambda name: lambda catalog: catalog.list_tables(name)),
    NAMESPACES.map(lambda name: lambda catalog: catalog.list_namespaces(name)),
    NAMESPACES.map(lambda name: lambda catalog: catalog.namespace_properties(name)),
    st.lists(TABLES, max_size=4).map(lambda tables: lambda catalog: catalog.pointers(tables)),
    TABLES.map(lambda table: lambda catalog: catalog.pointer(table)),
    st.just(lambda catalog: catalog.list_namespaces()),
)


def answer(catalog: Catalog, call: Call) -> object:
    try:
        return call(catalog)
    except IcefieldError as error:
        return type(error)


def check_answers(catalog: Catalog, calls: list[Call]) -> None:
    model = MemoryCatalog()
    with closing(catalog):
        for call in calls:
            assert answer(catalog, call) == answer(model, call)


@settings(max_examples=80)
@given(st.lists(CALLS, min_size=5, max_size=40))
def test_sqlite_answers_as_memory_does(calls: list[Call]) -> None:
    with TemporaryDirectory() as directory:
        fast = SqliteSettings(durable=False)
        check_answers(open_sqlite_catalog(Path(directory) / "c.db", settings=fast), calls)


@settings(max_examples=40)
@given(st.lists(CALLS, min_size=5, max_size=40))
def test_postgres_answers_as_memory_does(postgres_server: PostgresServer, calls: list[Call]) -> None:
    check_answers(open_postgres_catalog(postgres_server.new_schema()), calls)
