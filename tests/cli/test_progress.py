"""Progress: plain lines where there is no terminal."""

import pytest

from icefield.cli.progress import show_progress, show_wait


def test_a_pipe_gets_one_line_per_note_with_its_own_count(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("reading", 6) as steps:
        for amount, note in ((1, "a.csv"), (2, "a.csv"), (3, "b.csv")):
            steps.advance(amount, note)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == ["reading …", "  a.csv (3 rows)", "  b.csv (3 rows)"]


def test_a_terminal_gets_a_live_line_that_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("reading", 6) as steps:
        steps.advance(6, "a.csv")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "reading" in shown.err
    assert "6 of 6 rows" in shown.err


def test_waiting_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with show_wait("starting"):
        pass
    assert capsys.readouterr() == ("", "starting …\n")
