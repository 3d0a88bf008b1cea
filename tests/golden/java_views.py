"""Views of Iceberg Java: their metadata, as its catalog in memory keeps it."""

from pathlib import Path
from typing import Any

from tests.golden.java_maker import ROOT

FOLDER = Path(__file__).parent / "views"


def make(spark: Any) -> None:
    """Write the metadata of a view with one version, and of one that was replaced."""
    iceberg = spark._jvm.org.apache.iceberg
    catalog = iceberg.inmemory.InMemoryCatalog()
    catalog.initialize("views", {})
    namespace = iceberg.catalog.Namespace.of(_array(spark, "shop"))
    catalog.createNamespace(namespace)
    builder = _builder(spark, catalog, namespace, "java_view", "SELECT id FROM orders")
    _save(iceberg, builder.create(), "java_view")
    builder = _builder(spark, catalog, namespace, "java_view_replaced", "SELECT id FROM orders")
    view = builder.withProperty("comment", "ids of orders").create()
    change = view.replaceVersion().withDefaultNamespace(namespace).withDefaultCatalog("lake")
    change.withSchema(_schema(iceberg, "id", "total"))
    change.withQuery("spark", "SELECT id, sum(price) AS total FROM orders GROUP BY id")
    change.withQuery("trino", 'SELECT "id", sum("price") AS "total" FROM "orders" GROUP BY 1')
    change.commit()
    _save(
        iceberg,
        catalog.loadView(iceberg.catalog.TableIdentifier.parse("shop.java_view_replaced")),
        "java_view_replaced",
    )


def _builder(spark: Any, catalog: Any, namespace: Any, name: str, query: str) -> Any:
    iceberg = spark._jvm.org.apache.iceberg
    builder = catalog.buildView(iceberg.catalog.TableIdentifier.parse(f"shop.{name}"))
    builder = builder.withSchema(_schema(iceberg, "id")).withDefaultNamespace(namespace).withQuery("spark", query)
    return builder.withLocation(f"{ROOT}/views/{name}")


def _schema(iceberg: Any, *names: str) -> Any:
    fields = ", ".join(
        f'{{"id": {at}, "name": "{name}", "required": false, "type": "long"}}' for at, name in enumerate(names, 1)
    )
    return iceberg.SchemaParser.fromJson(f'{{"type": "struct", "schema-id": 0, "fields": [{fields}]}}')


def _array(spark: Any, *values: str) -> Any:
    array = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, len(values))
    for at, value in enumerate(values):
        array[at] = value
    return array


def _save(iceberg: Any, view: Any, name: str) -> None:
    text = iceberg.view.ViewMetadataParser.toJson(view.operations().current(), True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")
