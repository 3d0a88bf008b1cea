"""Text that is safe to print, and its small parts."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.cli.output import (
    Column,
    Narrator,
    cell_text,
    counted,
    grid,
    kebab,
    moment,
    print_grid,
    safe,
    short_location,
)


@given(st.text())
def test_safe_text_has_only_printable_characters(text: str) -> None:
    assert safe(text).isprintable()
    assert safe(text, keep_lines=True).replace("\n", "").replace("\t", "").isprintable()


@given(st.text().filter(str.isprintable))
def test_safe_text_leaves_what_is_printable(text: str) -> None:
    assert safe(text) == text


@given(st.integers(0, 4_102_444_800_000))
def test_a_moment_is_read_back_as_the_same_millisecond(timestamp_ms: int) -> None:
    at = datetime.datetime.fromisoformat(moment(timestamp_ms))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert (at - epoch) // datetime.timedelta(milliseconds=1) == timestamp_ms


def test_a_moment_beyond_the_calendar_is_still_told() -> None:
    assert moment(10**18) == "1000000000000000000 ms"


def test_counted() -> None:
    assert [counted(0, "row"), counted(1, "row"), counted(1234, "row")] == ["0 rows", "1 row", "1,234 rows"]
    assert counted(2, "process", "processes") == "2 processes"


def test_cells_group_digits_but_not_of_text() -> None:
    assert [cell_text(v) for v in (1234567, "1234567", None, True)] == ["1,234,567", "1234567", "-", "True"]


def test_kebab_renames_keys_at_every_depth() -> None:
    assert kebab({"a_b": [{"c_d": "e_f"}]}) == {"a-b": [{"c-d": "e_f"}]}


def test_only_locations_inside_are_shortened() -> None:
    assert short_location("file:///lake/t/data/x", "file:///lake/t") == "data/x"
    assert short_location("file:///lake/t2/data/x", "file:///lake/t") == "file:///lake/t2/data/x"


def test_a_grid_in_a_pipe_is_aligned_unfolded_and_not_padded(capsys: pytest.CaptureFixture[str]) -> None:
    print_grid([Column("name"), Column("n", "right"), Column("")], [["x" * 200, 5, ""], ["[bold]", 12345, "end"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{'name':200}       n",
        f"{'x' * 200}       5",
        f"{'[bold]':200}  12,345  end",
    ]


@pytest.mark.parametrize("to_stderr", [False, True])
def test_a_story_goes_to_one_stream_with_numbered_chapters(capsys: pytest.CaptureFixture[str], to_stderr: bool) -> None:
    narrator = Narrator(to_stderr=to_stderr)
    narrator.chapter("One")
    narrator.say("It begins.")
    narrator.show(grid([Column("n")], [[1]]))
    narrator.chapter("Two")
    output, silent = reversed(capsys.readouterr()) if to_stderr else capsys.readouterr()
    assert output == "\n1. One\nIt begins.\n   n\n   1\n\n2. Two\n"
    assert silent == ""
