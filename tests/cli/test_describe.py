"""icefield describe."""

from tests.cli.conftest import Icefield

from icefield.cli.commands.describe import transform_text
from icefield.model.partition import parse_transform_call

NESTED = "id long not null, tags list<string>, place struct<lat: double, lon: double not null>, m map<string, int>"

COLUMNS = """
columns
  1  id         long    not null
  2  tags       list
  5    element  string
  3  place      struct
  6    lat      double
  7    lon      double  not null
  4  m          map
  8    key      string  not null
  9    value    int
"""


def test_describe_shows_columns_with_ids_at_every_depth(icefield: Icefield) -> None:
    icefield("create", "a.b", NESTED, "--order-by", "id desc", "--property", "owner=ada")
    shown = icefield("describe", "a.b").out
    assert COLUMNS in shown
    assert "\nsort order\n  id desc nulls last\n" in shown
    assert "\nproperties\n  owner  ada\n" in shown
    assert "current snapshot  none: the table has no snapshots\n" in shown


def test_describe_shows_layout_and_totals_after_a_write(orders: Icefield) -> None:
    shown = orders("describe", "shop.orders").out
    assert "\npartition fields\n  1000  ts_day  day(ts)\n" in shown
    assert "  4 rows in 3 data files, " in shown
    snapshot = orders("snapshots", "shop.orders", "--json").json[0]["snapshot-id"]
    assert f"\nrefs\n  main  branch at {snapshot}\n" in shown


def test_describe_as_json_has_ids_as_text(orders: Icefield) -> None:
    value = orders("describe", "shop.orders", "--json").json
    assert value["columns"][0] == {"id": 1, "name": "id", "type": "long", "required": True, "doc": None}
    assert value["partition-by"] == [{"id": 1000, "name": "ts_day", "source-ids": [2], "transform": "day(ts)"}]
    assert value["refs"] == {"main": value["current-snapshot"]["snapshot-id"]}
    assert isinstance(value["refs"]["main"], str)
    assert value["totals"]["total-records"] == 4


def test_a_transform_is_written_as_it_is_read() -> None:
    for text in ("ts", "day(ts)", "bucket(16, id)", "truncate(4, name)", "void(x)"):
        assert transform_text(*parse_transform_call(text)) == text
