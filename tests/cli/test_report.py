"""icefield report."""

from pathlib import Path

from tests.cli.conftest import Icefield


def test_a_report_of_a_table_and_of_a_lake(orders: Icefield) -> None:
    done = orders("report", "shop.orders")
    assert done.code == 0
    assert done.out.startswith("shop.orders: ")
    assert "to gain: nothing" in done.out
    orders("create", "shop.other", "id long")
    both = orders("report")
    assert both.out.count("to gain") == 3
    assert "measuring tables" in both.err
    assert "checking tables" in orders("fsck").err


def test_a_report_is_data(orders: Icefield) -> None:
    document = orders("report", "shop.orders", "--price", "0.023", "--json").json
    assert document["table"] == "shop.orders"
    assert document["debt"]["data-files"] == 3
    assert document["stored"]["bytes"] == sum(document[part]["bytes"] for part in ("live", "history"))
    assert document["kept"]["bytes"] == document["history"]["bytes"] + document["waiting"]["bytes"]
    assert document["retention"] == {"max-snapshot-age-ms": 432000000, "min-snapshots": 1, "grace-ms": 86400000}
    assert document["cost"]["stored"] >= document["cost"]["live"] > 0


def test_the_report_of_a_lake_has_one_form_and_counts_a_table_once(orders: Icefield) -> None:
    alone = orders("report", "--json").json
    twice = orders("report", "shop.orders", "shop.orders", "--json").json
    orders("create", "shop.other", "id long")
    both = orders("report", "--json").json
    assert alone.keys() == twice.keys() == both.keys()
    assert [len(each["tables"]) for each in (alone, twice, both)] == [1, 1, 2]
    assert twice["stored"] == alone["stored"]


def test_a_wrong_price_and_a_missing_table_are_refused(orders: Icefield) -> None:
    assert orders("report", "--price", "-1").code == 1
    assert "shop.none" in orders("report", "shop.none").err


def test_a_table_that_cannot_be_measured_is_named_and_the_others_are_reported(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("id\n1\n")
    orders("create", "shop.other", "id long", "--property", "icefield.compaction.max-file-size-bytes=1")
    orders("ingest", "shop.other", str(tmp_path / "one.csv"))
    done = orders("report", "--json")
    assert (done.code, [each["error"] is None for each in done.json["tables"]]) == (1, [True, False])
    assert "target file size" in orders("report", "shop.other").err
