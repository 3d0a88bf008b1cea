"""The text of a query for Spark: what is replaced, and how positions in it are mapped back."""

from hypothesis import given
from hypothesis import strategies as st

from icefield.sql.syntax.place import Place
from icefield.sql.text.rewrite import Edit, Rewritten, rewrite


@st.composite
def edited(draw: st.DrawFn) -> Rewritten:
    """Draw a text, a part of it, and edits of that part that do not overlap."""
    source = draw(st.text("abc \n", min_size=1, max_size=60))
    start = draw(st.integers(0, len(source)))
    end = draw(st.integers(start, len(source)))
    cuts = sorted(draw(st.lists(st.integers(start, end), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    strings = draw(st.lists(st.text("XYZ", max_size=9), min_size=len(pairs), max_size=len(pairs)))
    return rewrite(Place(source, start, end), [Edit(a, b, new) for (a, b), new in zip(pairs, strings, strict=True)])


@given(edited())
def test_every_character_of_the_new_text_leads_to_where_it_comes_from(rewritten: Rewritten) -> None:
    source, new, at = rewritten.origin.source, rewritten.text, 0
    old = rewritten.origin.start
    for edit in rewritten.edits:
        for _ in range(old, edit.start):
            place = rewritten.place(at, at + 1)
            assert (place.start, place.end, place.text) == (old, old + 1, new[at])
            at, old = at + 1, old + 1
        for _ in edit.text:
            place = rewritten.place(at, at + 1)
            assert (place.start, place.end) == (edit.start, edit.end)
            at += 1
        old = edit.end
    assert new[at:] == source[old : rewritten.origin.end]
    for index in range(at, len(new)):
        place = rewritten.place(index, index + 1)
        assert (place.start, place.text) == (old + index - at, new[index])


@given(edited(), st.data())
def test_a_part_of_the_new_text_leads_to_all_that_it_comes_from(rewritten: Rewritten, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rewritten.text)))
    stop = data.draw(st.integers(start, len(rewritten.text)))
    place = rewritten.place(start, stop)
    singles = [rewritten.place(index, index + 1) for index in range(start, stop)]
    if singles:
        assert place.start == singles[0].start
        assert place.end == max(place.start, singles[-1].end)
    assert rewritten.origin.start <= place.start <= place.end <= rewritten.origin.end
