"""icefield tables, create, drop."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield, answer

import icefield as package


def metadata_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.metadata.json"))


def test_tables_lists_names_one_per_line(orders: Icefield) -> None:
    orders("create", "web.clicks", "id long")
    assert orders("tables").out == "shop.orders\nweb.clicks\n"
    assert orders("tables", "web").out == "web.clicks\n"


def test_tables_as_json(orders: Icefield, tmp_path: Path) -> None:
    assert orders("tables", "--json").json == {"lake": f"file://{tmp_path}/lake", "tables": ["shop.orders"]}


def test_an_empty_lake_is_told_on_stderr(orders: Icefield) -> None:
    orders("drop", "shop.orders", "--yes")
    assert (orders("tables").out, orders("tables").err) == ("", "There are no tables.\n")


def test_create_makes_the_table_as_told(icefield: Icefield, tmp_path: Path) -> None:
    made = icefield(
        *("create", "a.b", "id long not null, ts timestamp", "--json", "--partition-by", "bucket(4, id)"),
        *("--partition-by", "ts", "--order-by", "ts desc", "--property", "owner=ada=1"),
    )
    assert made.code == 0
    with package.connect(tmp_path / "lake") as lake:
        table = lake.table("a.b")
        assert made.json == {"table": "a.b", "location": table.location, "metadata-file": table.metadata_location}
        assert [f.name for f in table.spec.fields] == ["id_bucket", "ts"]
        assert [f.direction for f in table.metadata.sort_order.fields] == ["desc"]
        assert table.properties["owner"] == "ada=1"


def test_drop_asks_and_a_no_changes_nothing(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    ran = orders("drop", "shop.orders")
    assert ran.code == 1
    assert "shop.orders (1 snapshot, 4 rows); its files are kept in file:///" in ran.err
    assert "error: nothing was dropped: it was not confirmed\n" in ran.err
    assert orders("tables").out == "shop.orders\n"


def test_drop_without_anybody_to_ask_changes_nothing(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "")
    assert orders("drop", "shop.orders").code == 1
    assert orders("tables").out == "shop.orders\n"


def test_drop_takes_the_table_out_and_leaves_its_files(
    orders: Icefield, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = metadata_files(tmp_path)
    answer(monkeypatch, "y\n")
    ran = orders("drop", "shop.orders")
    assert (ran.code, ran.out[:20]) == (0, "dropped shop.orders ")
    assert orders("tables").out == ""
    assert metadata_files(tmp_path) == before


def test_drop_dry_run_says_the_same_and_does_nothing(orders: Icefield) -> None:
    planned = orders("drop", "shop.orders", "--dry-run", "--json").json
    assert planned["dropped"] is False
    assert orders("drop", "shop.orders", "--dry-run").out.startswith("would drop shop.orders (1 snapshot, 4 rows)")
    done = orders("drop", "shop.orders", "--yes", "--json").json
    assert done == {**planned, "dropped": True}


def test_a_table_that_cannot_be_read_can_be_dropped(orders: Icefield, tmp_path: Path) -> None:
    for path in metadata_files(tmp_path):
        path.write_text("{")
    assert orders("describe", "shop.orders").code == 1
    assert "cannot be read" in orders("drop", "shop.orders", "--yes").out
    assert orders("tables").out == ""


def test_create_takes_a_format_version(icefield: Icefield) -> None:
    assert icefield("create", "a.old", "id long", "--format-version", "1").code == 0
    assert icefield("describe", "a.old", "--json").json["format-version"] == 1
    refused = icefield("create", "a.new", "id long", "--format-version", "4")
    assert (refused.code, "4" in refused.err) == (1, True)


def test_upgrade_asks_and_raises_the_version(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "n\n")
    ran = orders("upgrade", "shop.orders")
    assert (ran.code, "cannot be undone" in ran.err) == (1, True)
    assert orders("upgrade", "shop.orders", "--dry-run").out == "would upgrade shop.orders from format version 2 to 3\n"
    assert orders("describe", "shop.orders", "--json").json["format-version"] == 2
    answer(monkeypatch, "y\n")
    assert orders("upgrade", "shop.orders").out == "upgraded shop.orders from format version 2 to 3\n"
    assert orders("describe", "shop.orders", "--json").json["format-version"] == 3
    done = orders("upgrade", "shop.orders", "--json").json
    assert done == {"table": "shop.orders", "from": 3, "to": 3, "upgraded": False}


@pytest.mark.parametrize(("version", "why"), [("1", "from format version 2 to 1"), ("4", "supports versions 1, 2, 3")])
def test_upgrade_refuses_what_cannot_be(orders: Icefield, version: str, why: str) -> None:
    ran = orders("upgrade", "shop.orders", "--to", version, "--dry-run")
    assert (ran.code, why in ran.err) == (1, True)
