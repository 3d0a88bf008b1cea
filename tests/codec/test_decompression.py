"""Small files that inflate to very much are refused before they fill the memory."""

import gzip
import json
import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.codec.avro_writer import container, deflate

from icefield.codec.decompression import ALWAYS_BYTES, MAX_GROWTH, most_inflated
from icefield.codec.json.keys import inflate_json
from icefield.codec.json.metadata import decode_metadata
from icefield.codec.json.metadata_owner import decode_outline
from icefield.codec.json.view import decode_view
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.list import decode_manifest_list
from icefield.codec.manifest.list_schema import list_schema_json
from icefield.codec.puffin.puffin import StoredBlob, decode_blob
from icefield.errors import CorruptFile

MIB = 1 << 20
PARTS = 400  # of one mebibyte each


def gzip_bomb() -> bytes:
    return gzip.compress(b" " * MIB) * PARTS


def avro_bomb() -> bytes:
    block = deflate(bytes(MIB))
    return container(list_schema_json(2), [(1, block)] * PARTS, {"avro.codec": "deflate"})


def puffin_bomb() -> bytes:
    codec: pa.Codec = pa.Codec("zstd")
    return bytes(codec.compress(bytes(PARTS * MIB), asbytes=True))


BOMBS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]] = {
    "metadata": (gzip_bomb, lambda data: decode_metadata(data, "f")),
    "view": (gzip_bomb, lambda data: decode_view(data, "f")),
    "outline": (gzip_bomb, lambda data: decode_outline(data, "f")),
    "manifest list": (avro_bomb, lambda data: decode_manifest_list(data, "f")),
    "manifest": (avro_bomb, lambda data: decode_manifest(data, "f", ManifestColumns(("file_path",)))),
    "puffin": (puffin_bomb, lambda data: decode_blob(data, StoredBlob("t", (), 1, 1, 4, len(data), "zstd"), "f")),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_within_bounded_memory(kind: str) -> None:
    make, decode = BOMBS[kind]
    data = make()
    assert len(data) * MAX_GROWTH < PARTS * MIB
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFile, match=r"inflate to more than|grows beyond"):
            decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < max(ALWAYS_BYTES, MAX_GROWTH * len(data)) + 32 * MIB


def test_what_may_be_inflated_grows_with_the_file() -> None:
    assert most_inflated(10, 1 << 30) == ALWAYS_BYTES
    assert most_inflated(1 << 20, 1 << 30) == MAX_GROWTH << 20
    assert most_inflated(1 << 30, 1 << 30) == 1 << 30


def test_several_gzip_members_are_one_file() -> None:
    text = json.dumps({"a": list(range(1000))}).encode()
    assert inflate_json(gzip.compress(text[:100]) + gzip.compress(text[100:]), "f") == text
    with pytest.raises(CorruptFile, match="gzip stream is corrupt"):
        inflate_json(gzip.compress(text)[:-9], "f")
