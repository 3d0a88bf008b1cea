"""icefield tree: the metadata tree, shortened where it is long."""

from pathlib import Path

from tests.cli.conftest import Icefield


def test_the_tree_goes_from_the_pointer_to_the_files(orders: Icefield, tmp_path: Path) -> None:
    table, metadata, snapshot, manifest_list, manifest, first, second, rest = orders(
        "tree", "shop.orders"
    ).out.splitlines()
    assert table.startswith(
        f"shop.orders  pointer in the catalog 'icefield'; files in file://{tmp_path}/lake/shop/orders-"
    )
    assert metadata.startswith("└── metadata/00001-")
    assert metadata.endswith("….metadata.json  metadata file, format version 2, 1 snapshot")
    assert snapshot.startswith("    └── snapshot ")
    assert snapshot.endswith(", 4 rows in 3 files")
    assert manifest_list.startswith("        └── metadata/snap-")
    assert manifest_list.endswith("manifest list, 1 manifest")
    assert manifest.endswith("manifest, files: 3 added, 4 rows")
    assert first.startswith("                ├── data/ts_day=2026-01-05/")
    assert "  2 rows, " in first
    assert "  1 row, " in second
    assert rest == "                └── … 1 more file"


def test_what_is_left_out_is_counted(orders: Icefield) -> None:
    for _ in range(4):
        orders("ingest", "shop.orders", "rows.jsonl")
    lines = orders("tree", "shop.orders", "--snapshots", "2", "--manifests", "1", "--files", "0").out.splitlines()
    assert [line.lstrip("│ ") for line in lines if "…" in line and "metadata/" not in line] == [
        "└── … 4 more manifests",
        "└── … 3 older snapshots",
    ]
    assert not any("data/" in line and "metadata/" not in line for line in lines)


def test_the_tree_as_json_has_whole_names_and_ids_as_text(orders: Icefield) -> None:
    value = orders("tree", "shop.orders", "--json", "--files", "5").json
    (snapshot,) = value["snapshots"]
    (manifest,) = snapshot["manifests"]
    assert value["metadata-file"] == orders("describe", "shop.orders", "--json").json["metadata-file"]
    assert snapshot["snapshot-id"] == orders("snapshots", "shop.orders", "--json").json[0]["snapshot-id"]
    assert manifest["added-by-snapshot"] == snapshot["snapshot-id"]
    files = orders("files", "shop.orders", "--json").json
    assert {f["file"] for f in manifest["files"]} == {f["file-path"] for f in files}


def test_an_older_snapshot_can_be_opened(orders: Icefield) -> None:
    orders("ingest", "shop.orders", "rows.jsonl")
    first, second = (s["snapshot-id"] for s in orders("snapshots", "shop.orders", "--json").json)
    opened, other = orders("tree", "shop.orders", "--as-of", first, "--json").json["snapshots"]
    assert (opened["snapshot-id"], opened["manifest-count"]) == (first, 1)
    assert (other["snapshot-id"], other["manifest-count"]) == (second, None)


def test_a_table_that_was_never_written_has_a_short_tree(icefield: Icefield) -> None:
    icefield("create", "a.b", "id long")
    assert len(icefield("tree", "a.b").out.splitlines()) == 2


def test_a_corrupt_manifest_is_named(orders: Icefield, tmp_path: Path) -> None:
    (manifest,) = tmp_path.rglob("*-m0.avro")
    manifest.write_bytes(b"Obj\x01garbage")
    ran = orders("tree", "shop.orders")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: cannot read file://{manifest}: ")
