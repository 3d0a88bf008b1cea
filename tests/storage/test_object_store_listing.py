"""Large listings are split by directory, and show every object once however the keys are laid out."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from obstore.store import MemoryStore
from tests.s3_server import s3_server

from icefield.errors import StorageError
from icefield.storage.object_store.listing import PAGE, find_directories, list_pages
from icefield.storage.object_store.store import ObjectStore

METADATA = [f"t/metadata/{at:04d}.avro" for at in range(30)]
LAYOUTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "small": ([*(f"t/data/{at}" for at in range(9)), *METADATA], []),
    "flat": ([*(f"t/data/{at}" for at in range(PAGE + 9)), *METADATA], ["t/data", "t/metadata"]),
    "partitions": (
        [*(f"t/data/d={at % 8}/{at}" for at in range(PAGE * 2)), *METADATA, "t/notes", "t/data2/x"],
        [*(f"t/data/d={day}" for day in range(8)), "t/data2", "t/metadata"],
    ),
    "one large partition": (
        [*(f"t/data/d=1/{at}" for at in range(PAGE + 9)), "t/data/d=2/x", "t/data/d=3/a/x", "t/data/own", *METADATA],
        ["t/data/d=1", "t/data/d=2", "t/data/d=3", "t/metadata"],
    ),
    "many small partitions": (
        [*(f"t/data/d={at}/x" for at in range(PAGE + 9)), *METADATA],
        ["t/data", "t/metadata"],
    ),
    "directly in it": ([f"t/{at}" for at in range(PAGE + 9)], []),
    "a name as a directory": (
        [*(f"t/data/d/{at}" for at in range(PAGE)), "t/data/d", "t/data/d0", *METADATA],
        ["t/data", "t/metadata"],
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_object_is_listed_once_and_directories_are_split(layout: str) -> None:
    keys, expected = LAYOUTS[layout]
    client = MemoryStore()
    for key in (*keys, "t2/other"):
        obstore.put(client, key, b"")
    listed = [found["path"] for page in list_pages(client, "t") for found in page]
    assert sorted(listed) == sorted(keys)
    page = sorted(keys)[:PAGE]
    directories = find_directories(client, "t", page)[1] if len(keys) >= PAGE else []
    assert sorted(directories) == expected


def test_a_whole_bucket_is_listed() -> None:
    client = MemoryStore()
    keys = sorted([*(f"a/{at % 3}/{at}" for at in range(PAGE + 5)), "b/x", "c"])
    for key in keys:
        obstore.put(client, key, b"")
    assert sorted(found["path"] for page in list_pages(client, "") for found in page) == keys


def test_a_large_listing_of_a_server_is_whole() -> None:
    root, store = s3_server().new_root(), ObjectStore(s3_server().properties)
    locations = [f"{root}/data/d={at % 2}/{at}" for at in range(PAGE + 20)] + [f"{root}/metadata/x"]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda location: store.put_new(location, b""), locations))
    assert sorted(file.location for file in store.list(root)) == sorted(locations)
    with pytest.raises(StorageError):
        list(ObjectStore(s3_server().properties).list("s3://nobody/t"))
