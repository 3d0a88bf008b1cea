"""Sort orders as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidInput
from icefield.model.sort_order import UNSORTED, Direction, NullOrder, SortField, SortOrder, parse_order_by
from icefield.types.text import parse_schema
from icefield.types.transforms import Bucket, Day, Identity, Transform, Truncate

SCHEMA = parse_schema(
    "id long, ts timestamp, name string, tags list<string>, at struct<zip int>, asc int, `x desc` int"
)
ASC, DESC, FIRST, LAST = Direction.ASC, Direction.DESC, NullOrder.FIRST, NullOrder.LAST
TERMS: dict[str, tuple[int, Transform, Direction, NullOrder]] = {
    "id": (1, Identity(), ASC, FIRST),
    "  id  ": (1, Identity(), ASC, FIRST),
    "id asc": (1, Identity(), ASC, FIRST),
    "id desc": (1, Identity(), DESC, LAST),
    "ID DESC": (1, Identity(), DESC, LAST),
    "id nulls first": (1, Identity(), ASC, FIRST),
    "id nulls last": (1, Identity(), ASC, LAST),
    "id asc nulls last": (1, Identity(), ASC, LAST),
    "id desc nulls first": (1, Identity(), DESC, FIRST),
    "id\tDesc\n NULLS   First ": (1, Identity(), DESC, FIRST),
    "day(ts) desc": (2, Day(), DESC, LAST),
    "bucket(16, id)": (1, Bucket(16), ASC, FIRST),
    "truncate(name, 2) desc nulls last": (3, Truncate(2), DESC, LAST),
    "`id` desc": (1, Identity(), DESC, LAST),
    "at.zip": (SCHEMA.find_field("at.zip").field_id, Identity(), ASC, FIRST),
    "asc": (6, Identity(), ASC, FIRST),
    "asc desc": (6, Identity(), DESC, LAST),
    "`x desc`": (7, Identity(), ASC, FIRST),
    "`x desc` desc": (7, Identity(), DESC, LAST),
}


@pytest.mark.parametrize("text", TERMS)
def test_every_way_to_write_a_term_is_read(text: str) -> None:
    assert parse_order_by([text], SCHEMA) == SortOrder((SortField(*TERMS[text]),), order_id=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " desc",
        "id down",
        "id desc desc",
        "id nulls",
        "id nulls middle",
        "id first",
        "missing",
        "tags",
        "at",
    ],
)
def test_a_term_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_order_by([text], SCHEMA)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "text", ["tags.element desc", "day(id)", "week(ts)", "id, ts", "nulls last", "desc", "id nulls last desc"]
)
def test_a_column_or_transform_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_order_by([text], SCHEMA)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("strings", ["id", [None], [1], [["id", "asc"]]])
def test_anything_but_a_list_of_strings_is_rejected(strings: list[str]) -> None:
    with pytest.raises(InvalidInput, match="sort term|list of strings"):
        parse_order_by(strings, SCHEMA)


def test_nothing_means_unsorted() -> None:
    assert parse_order_by([], SCHEMA) == UNSORTED
    assert UNSORTED.is_unsorted
    assert UNSORTED.order_id == 0


def test_terms_keep_their_order_and_the_order_is_not_the_unsorted_one() -> None:
    order = parse_order_by(["name desc", "id"], SCHEMA)
    assert [f.source_id for f in order.fields] == [3, 1]
    assert order.order_id == 1
    assert not order.is_unsorted


@effort(60)
@given(
    st.sampled_from(["id", "day(ts)", "bucket(4, name)"]),
    st.sampled_from(["", "asc", "desc", "DESC"]),
    st.sampled_from(["", "nulls first", "NULLS LAST"]),
    st.text(" \t\n", min_size=1, max_size=3),
)
def test_nulls_come_first_going_up_and_last_going_down_unless_said(
    term: str, direction: str, nulls: str, gap: str
) -> None:
    (field,) = parse_order_by([gap.join(filter(None, (term, direction, nulls)))], SCHEMA).fields
    assert field.direction == (direction.lower() or "asc")
    default = "nulls-first" if field.direction is ASC else "nulls-last"
    assert field.null_order == (nulls.lower().replace(" ", "-") or default)


@pytest.mark.parametrize("kind", ["variant", "geometry", "geography", "unknown"])
def test_types_without_an_order_cannot_be_sorted_by(kind: str) -> None:
    with pytest.raises(InvalidInput, match="'c'"):
        parse_order_by(["c desc"], parse_schema(f"c {kind}"))


def test_any_number_of_blanks_in_a_term_costs_no_more_than_reading_them() -> None:
    """Each tried as the first of the ending, so many would take hours."""
    blanks = " " * 200_000
    (field,) = parse_order_by([f"id{blanks}desc{blanks}nulls{blanks}first{blanks}"], SCHEMA).fields
    assert (field.direction, field.null_order) == (Direction.DESC, NullOrder.FIRST)
    with pytest.raises(InvalidInput):
        parse_order_by([f"id{blanks}x"], SCHEMA)
