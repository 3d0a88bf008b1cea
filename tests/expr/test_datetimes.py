"""Dates and times as text, for any year."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.expr.parse.ast import Date, Time, Timestamp
from icefield.expr.parse.datetimes import (
    from_python,
    nano_timestamp_text,
    parse_date,
    parse_time,
    parse_timestamp,
    time_text,
    timestamp_text,
)
from icefield.types.calendar import date_text

EPOCH = datetime.date(1970, 1, 1)
DAY = 86_400_000_000


@given(st.dates())
@effort()
def test_dates_agree_with_python(day: datetime.date) -> None:
    days = (day - EPOCH).days
    assert date_text(days) == day.isoformat()
    assert parse_date(day.isoformat()) == Date(days) == from_python(day)


@given(st.integers(-(1 << 31), (1 << 31) - 1))
@effort()
def test_every_day_survives_as_text(days: int) -> None:
    assert parse_date(date_text(days)) == Date(days)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@effort()
def test_every_timestamp_survives_as_text(micros: int) -> None:
    text = timestamp_text(micros)
    assert parse_timestamp(text) == Timestamp(micros, zoned=False)
    assert parse_timestamp(f"{text}+00:00") == Timestamp(micros, zoned=True)


@given(st.integers(0, DAY - 1))
@effort()
def test_every_time_survives_as_text(micros: int) -> None:
    assert parse_time(time_text(micros)) == Time(micros)


@given(st.datetimes(timezones=st.none() | st.timezones()))
@effort()
def test_datetimes_agree_with_python(moment: datetime.datetime) -> None:
    aware = moment.tzinfo is not None
    utc = moment if aware else moment.replace(tzinfo=datetime.UTC)
    elapsed = utc - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert from_python(moment) == Timestamp(elapsed // datetime.timedelta(microseconds=1), zoned=aware)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01 00:00:01", Timestamp(1_000_000, zoned=False)),
        ("1970-01-01T00:00:00.5", Timestamp(500_000, zoned=False)),
        ("1970-01-01 00:00:00.0000015", Timestamp(1, zoned=False, nanos=500)),
        ("1969-12-31 23:59:59.999999999Z", Timestamp(-1, zoned=True, nanos=999)),
        ("1970-01-01 1:2", Timestamp(3_720_000_000, zoned=False)),
        (" 1970-01-02 ", Timestamp(DAY, zoned=False)),
        ("1970", Timestamp(0, zoned=False)),
        ("1970-1-2", Timestamp(DAY, zoned=False)),
        ("1970-01-01 00:00:00Z", Timestamp(0, zoned=True)),
        ("1970-01-01 00:00:00 UTC", Timestamp(0, zoned=True)),
        ("1970-01-01 01:00:00+01:00", Timestamp(0, zoned=True)),
        ("1970-01-01 00:00:00-1", Timestamp(3_600_000_000, zoned=True)),
        ("2024-07-01 02:00:00 Europe/Berlin", Timestamp(19905 * DAY, zoned=True)),
        ("+10000-01-01", Timestamp(2_932_897 * DAY, zoned=False)),
        ("-0001-12-31", Timestamp(-719_529 * DAY, zoned=False)),
    ],
)
def test_timestamps(text: str, expected: Timestamp) -> None:
    assert parse_timestamp(text) == expected


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@effort()
def test_nanoseconds_survive_as_text(nanos: int) -> None:
    text = nano_timestamp_text(nanos)
    assert parse_timestamp(text).total_nanos == nanos
    assert parse_timestamp(f"{text} UTC").total_nanos == nanos


def test_a_timestamp_of_pandas_keeps_its_nanoseconds() -> None:
    class Fine(datetime.datetime):
        """As a pandas timestamp is one."""

        nanosecond = 7

    assert from_python(Fine(1970, 1, 1, 0, 0, 1)) == Timestamp(1_000_000, zoned=False, nanos=7)


def test_a_time_of_day_has_microseconds_at_best() -> None:
    assert parse_time("10:30:00.123456000") == Time(37_800_123_456)
    with pytest.raises(ValueError, match="more than microsecond precision"):
        parse_time("10:30:00.1234567")


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "2020-13-01", "2020-02-30", "2019-02-29", "20-01-01", "2020-01-01 25:00:00", "2020-01-01 10",
        "2020-01-01 10:00:00.1234567890", "2020-01-01 10:00:00+19:00", "2020-01-01 10:00:00 Nowhere/City",
        "2020-01-01Z", "2020-01-01 10:00:60", "+12000-01-01 00:00:00 Europe/Berlin", "٢٠٢٠-01-01",
    ],
)  # fmt: skip
def test_what_is_no_timestamp(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_timestamp(text)
