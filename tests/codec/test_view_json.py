"""View metadata as JSON: the spec's example, round trips, and what is refused."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.cases import LOCATION

from icefield.codec.json.view import decode_view, encode_view
from icefield.errors import CorruptFile, Unsupported
from icefield.model.view import OtherRepresentation

# The example of the view spec, Appendix A.
SPEC: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "properties": {"comment": "Daily event counts"},
    "schemas": [
        {
            "type": "struct",
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"},
                {"id": 2, "name": "event_date", "required": False, "type": "date"},
            ],
        }
    ],
    "current-version-id": 1,
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1573518431292,
            "schema-id": 1,
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "representations": [
                {
                    "type": "sql",
                    "sql": "SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM events\nGROUP BY 2",
                    "dialect": "spark",
                }
            ],
        }
    ],
    "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
}


def encoded(**changed: Any) -> bytes:
    keys = {**SPEC, **{key.replace("_", "-"): value for key, value in changed.items()}}
    return json.dumps({key: value for key, value in keys.items() if value is not None}).encode()


def version(**changed: Any) -> dict[str, Any]:
    return {**SPEC["versions"][0], **{key.replace("_", "-"): value for key, value in changed.items()}}


def test_the_example_of_the_spec_is_read_and_written() -> None:
    view = decode_view(encoded(), LOCATION)
    assert [(f.name, str(f.type), f.doc) for f in view.schema.fields] == [
        ("event_count", "int", "Count of events"),
        ("event_date", "date", None),
    ]
    current = view.current_version
    assert (current.default_catalog, current.default_namespace, current.dialects) == ("prod", ("default",), ("spark",))
    assert json.loads(encode_view(view)) == SPEC
    assert list(json.loads(encode_view(view))) == list(SPEC)


def test_what_is_optional_may_be_missing_or_null() -> None:
    for changed in ({"properties": None}, {}):
        view = decode_view(encoded(**changed, versions=[version(default_catalog=None)]), LOCATION)
        assert view.current_version.default_catalog is None
        written = json.loads(encode_view(view))
        assert "default-catalog" not in written["versions"][0]
        assert ("properties" in written) is ("properties" not in changed)


def test_what_is_not_known_is_kept() -> None:
    other = {"type": "plan", "body": [1, {"x": None}]}
    representations = [*SPEC["versions"][0]["representations"], other]
    data = encoded(new=[1, 2], versions=[version(representations=representations, later={"a": 1})])
    view = decode_view(data, LOCATION)
    assert isinstance(view.current_version.representations[1], OtherRepresentation)
    assert json.loads(encode_view(view)) == json.loads(data)
    assert decode_view(encode_view(view), LOCATION) == view


def test_gzipped_files_are_read_whatever_their_name() -> None:
    assert decode_view(gzip.compress(encoded()), LOCATION) == decode_view(encoded(), LOCATION)


def test_another_format_version_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="view format version 2"):
        decode_view(encoded(format_version=2), LOCATION)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "not valid view metadata"),
        (b"[]", "not valid view metadata"),
        (b"{}", "'format-version' is missing"),
        (b"[" * 100_000, "not valid view metadata"),
        (b"\x1f\x8b" + b"junk" * 9, "gzip"),
        (encoded(view_uuid=None), "'view-uuid' is missing"),
        (encoded(view_uuid="x"), "not valid view metadata"),
        (encoded(current_version_id=7), "no version 7"),
        (encoded(current_version_id=1 << 40), "not valid view metadata"),
        (encoded(versions=[]), "no version 1"),
        (encoded(versions=[version(), version()]), "duplicate ids"),
        (encoded(versions=[version(schema_id=9)]), "no schema with id 9"),
        (encoded(versions=[version(summary=None)]), "not valid view metadata"),
        (encoded(versions=[version(representations=[{"sql": "x"}])]), "not valid view metadata"),
        (
            encoded(versions=[version(representations=[{"type": "sql", "sql": 1, "dialect": "x"}])]),
            "not valid view metadata",
        ),
        (encoded(versions=[version(representations=version()["representations"] * 2)]), "in one dialect"),
        (encoded(schemas=[{"type": "list"}]), "not valid view metadata"),
        (encoded(properties={"a": 1}), "not valid view metadata"),
        (encoded(version_log=[{"version-id": 1}]), "not valid view metadata"),
    ],
)
def test_metadata_that_cannot_be_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(CorruptFile, match=fault) as refused:
        decode_view(data, LOCATION)
    assert refused.value.location == LOCATION


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([*SPEC, *SPEC["versions"][0]]), json_values)
def test_any_value_under_any_key_is_read_or_refused(key: str, value: Any) -> None:
    inside = {**SPEC, "versions": [{**SPEC["versions"][0], key: value}]}
    for document in ({**SPEC, key: value}, inside):
        try:
            view = decode_view(json.dumps(document).encode(), LOCATION)
        except (CorruptFile, Unsupported):
            continue
        assert decode_view(encode_view(view), LOCATION) == view
