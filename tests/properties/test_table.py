"""Table properties: each key once, a default that its own parser accepts, and clear words for a bad value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidInput
from icefield.properties.check import check_properties
from icefield.properties.property import Property
from icefield.properties.table import (
    COMMIT_RETRIES,
    METADATA_DELETE_AFTER_COMMIT,
    METRICS_COLUMN_PREFIX,
    METRICS_DEFAULT,
    PARQUET_CODEC,
    TABLE_PROPERTIES,
    TARGET_FILE_SIZE_BYTES,
)

pytestmark = pytest.mark.every_case

KEYS = [p.key for p in TABLE_PROPERTIES]


def test_keys_are_unique_and_documented() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert all(p.doc.endswith((".", ".)")) for p in TABLE_PROPERTIES)


@pytest.mark.parametrize("known", TABLE_PROPERTIES, ids=KEYS)
def test_a_property_that_is_not_set_has_its_default(known: Property[object]) -> None:
    assert known.read({}) == known.default
    assert known.read({"something.else": "1"}) == known.default


@pytest.mark.parametrize("known", TABLE_PROPERTIES, ids=KEYS)
def test_a_default_written_out_means_the_same(known: Property[object]) -> None:
    text = str(known.default).lower()
    assert known.read({known.key: text}) == known.default
    check_properties({known.key: text})


@pytest.mark.parametrize("known", TABLE_PROPERTIES, ids=KEYS)
@pytest.mark.parametrize(
    "text", ["", "banana", "-1", "1.5", "9" * 5000, "1_000", " 5", "٣", str(2**63)], ids=lambda text: text[:9]
)
def test_a_value_that_does_not_parse_is_refused_with_key_and_value(known: Property[object], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        known.read({known.key: text})
    assert known.key in str(caught.value)
    assert repr(text)[:40] in str(caught.value)
    with pytest.raises(InvalidInput):
        check_properties({known.key: text})


def test_what_must_be_positive_refuses_zero_and_what_may_be_none_takes_it() -> None:
    assert COMMIT_RETRIES.read({COMMIT_RETRIES.key: "0"}) == 0
    with pytest.raises(InvalidInput, match="at least 1"):
        TARGET_FILE_SIZE_BYTES.read({TARGET_FILE_SIZE_BYTES.key: "0"})


def test_words_are_read_in_any_case() -> None:
    assert PARQUET_CODEC.read({PARQUET_CODEC.key: "ZSTD"}) == "zstd"
    assert METADATA_DELETE_AFTER_COMMIT.read({METADATA_DELETE_AFTER_COMMIT.key: "False"}) is False


@pytest.mark.parametrize("mode", ["none", "counts", "full", "truncate(16)", "Truncate(1)", " full "])
def test_every_metrics_mode_is_taken(mode: str) -> None:
    check_properties({METRICS_DEFAULT.key: mode, "write.metadata.metrics.column.a.b": mode})


@pytest.mark.parametrize("mode", ["truncate", "truncate(0)", "truncate(-1)", "truncate(x)", "all", "full none"])
def test_a_metrics_mode_that_would_fail_every_write_is_refused_when_it_is_set(mode: str) -> None:
    for key in (METRICS_DEFAULT.key, METRICS_COLUMN_PREFIX + "a"):
        with pytest.raises(InvalidInput, match="must be none, counts"):
            check_properties({key: mode})


@pytest.mark.parametrize("bad", [{"k": 1}, {"k": None}, {1: "v"}, {"k": ["v"]}, {"k": b"v"}])
def test_keys_and_values_that_are_no_texts_are_refused(bad: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="strings"):
        check_properties(bad)


@effort(60)
@given(st.dictionaries(st.text().map("mine: {}".format), st.text()))
def test_unknown_keys_are_left_alone(properties: dict[str, str]) -> None:
    check_properties(properties)
