"""Names: what passes is safe as a directory name and as a SQL value, and comes back as it was written."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidInput
from icefield.model.names import TableName, parse_namespace, parse_table_name

pytestmark = pytest.mark.every_case

HOSTILE = {
    "empty": "",
    "only dots": "..",
    "climbing": "../x",
    "climbing inside": "shop.../x",
    "leading dot": ".orders",
    "trailing dot": "shop.",
    "empty part": "shop..orders",
    "slash": "shop/orders.x",
    "backslash": "shop\\orders.x",
    "zero byte": "shop.or\0ders",
    "newline": "shop.orders\n",
    "newline inside": "shop.or\nders",
    "tab": "shop.or\tders",
    "escape": "shop.\x1b[31m",
    "delete": "shop.or\x7fders",
    "C1 control": "shop.or\x85ders",
    "line separator": "shop.or\u2028ders",
    "paragraph separator": "shop.or\u2029ders",
    "blank before": "shop. orders",
    "blank after": "shop.orders ",
    "no-break blank": "shop.\u00a0orders",
    "blank part": "shop. ",
    "right to left override": "shop.\u202eorders",
    "isolate": "shop.a\u2066b",
    "invisible": "shop.or\u200bders",
    "byte order mark": "\ufeffshop.orders",
    "lone surrogate": "shop.\ud800",
    "256 bytes": "shop." + "a" * 256,
    "256 bytes of two": "shop." + "é" * 128,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_hostile_passes(text: str) -> None:
    for parse in (parse_table_name, parse_namespace):
        with pytest.raises(InvalidInput):
            parse(text)


@pytest.mark.parametrize("value", [None, 3, b"shop.orders", ["shop", "orders"], ("shop",), TableName(("a",), "b")])
def test_only_texts_are_names(value: str) -> None:
    for parse in (parse_table_name, parse_namespace):
        with pytest.raises(InvalidInput, match="must be a string"):
            parse(value)


@pytest.mark.parametrize(
    "part",
    ["a", "a" * 255, "é" * 127, "Größe", "日本語", "a b", "a-b_c", "x'; DROP TABLE t; --", "%2e%2e", "~", "-", "🧊"],
)
def test_a_name_comes_back_as_it_was(part: str) -> None:
    assert parse_table_name(f"shop.{part}") == TableName(("shop",), part)
    assert parse_namespace(part) == (part,)
    assert str(parse_table_name(f"a.b.{part}")) == f"a.b.{part}"


def test_a_table_stands_in_a_namespace() -> None:
    with pytest.raises(InvalidInput, match="no namespace.*<namespace>.orders"):
        parse_table_name("orders")
    assert parse_table_name("a.b.c") == TableName(("a", "b"), "c")


@pytest.mark.parametrize("tail", ["", "/", " "])
def test_the_message_of_a_very_long_name_is_short(tail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_table_name("shop." + "x" * 1_000_000 + tail)
    assert len(str(caught.value)) < 400


def test_names_sort_by_namespace_first() -> None:
    names = [parse_table_name(t) for t in ("b.a", "a.z", "a.b.c", "a.a")]
    assert [str(n) for n in sorted(names)] == ["a.a", "a.z", "a.b.c", "b.a"]


@effort(60)
@given(st.text(max_size=30))
def test_whatever_passes_is_safe_and_round_trips(text: str) -> None:
    try:
        parts = parse_namespace(text)
    except InvalidInput:
        return
    assert ".".join(parts) == text
    for part in parts:
        assert part.strip() == part != ""
        assert not set(part) & set("/\\.\0")
        assert len(part.encode()) <= 255
        assert not {unicodedata.category(c) for c in part} & {"Cc", "Cs", "Zl", "Zp"}


@effort(60)
@given(st.lists(st.text("ab ./\\\0\n\x7f\u2028é", max_size=3), min_size=2, max_size=4))
def test_a_name_passes_just_when_all_its_parts_do(parts: list[str]) -> None:
    def passes(text: str) -> bool:
        try:
            parse_namespace(text)
        except InvalidInput:
            return False
        return True

    assert passes(".".join(parts)) == all(passes(part) for part in parts)
