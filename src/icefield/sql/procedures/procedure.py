"""What a procedure is: its name, its parameters with their types, the columns of its result, and what it does.

    CALL system.expire_snapshots(table => 'shop.orders', retain_last => 5)

Names of arguments are found in any case. Values are converted as Spark casts them; each error points at the argument.
Raises InvalidInput, NoSuchTable.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

import pyarrow as pa

from icefield.arguments import whole_number
from icefield.engine.choose import EngineName
from icefield.errors import IcefieldError, InvalidInput, Unsupported
from icefield.model.names import TableName
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.text.constants import as_moment, constant_value, evaluate, session_zone
from icefield.table.table import Table


class Kind(StrEnum):
    """The type of an argument, as Spark names it."""

    STRING = "string"
    LONG = "bigint"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LONGS = "array<bigint>"
    STRINGS = "array<string>"
    MAP = "map<string,string>"


@dataclass(frozen=True)
class Parameter:
    """One argument that a procedure takes."""

    name: str
    kind: Kind
    is_required: bool = False


@dataclass(frozen=True)
class Given:
    """An argument as it is written: with its name, or by its position."""

    value: Place
    name: str | None = None
    name_place: Place | None = None

    @property
    def place(self) -> Place:
        """The name and the value."""
        start = self.value.start if self.name_place is None else self.name_place.start
        return Place(self.value.source, start, self.value.end)


@dataclass(frozen=True)
class Arguments:
    """The values of a call, by the names of parameters, and their places."""

    run: Run
    values: Mapping[str, Any]
    places: Mapping[str, Place]
    call: Place
    engine: EngineName | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    def place(self, name: str) -> Place:
        """Return the place of an argument, or of the call if it is not given."""
        return self.places.get(name, self.call)

    def error(self, name: str, message: str, *, hint: str | None = None, kind: Any = InvalidInput) -> IcefieldError:
        """Return an error that points at an argument."""
        return self.place(name).error(message, hint=hint, kind=kind)

    def name(self, argument: str = "table") -> Name:
        """Return an argument that is the name of a table."""
        text, place = str(self.values[argument]), self.place(argument)
        cursor = Cursor(text)
        try:
            found = cursor.name()
            cursor.expect_end()
        except InvalidInput:
            raise place.error(f"{text!r} is not the name of a table", kind=InvalidInput) from None
        return Name(found.parts, place)

    def new_name(self, argument: str = "table") -> TableName:
        """Return an argument that is the full name of a new table."""
        return self.run.new_name(self.name(argument))

    def table(self, argument: str = "table") -> Table:
        """Open the table that an argument names, possibly at a branch."""
        return self.run.table(self.name(argument))

    def table_name(self, argument: str = "table") -> str:
        """Return the full name of a table that need not be readable."""
        name = self.name(argument)
        found = self.run.find_changed(name, "change")
        if found is None:
            raise self.run.missing(name, "table")
        return str(found.name)

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of some arguments that are given and not null."""
        return {name: self.values[name] for name in names if self.values.get(name) is not None}


ProcedureRows = Iterable[Sequence[object]]


@dataclass(frozen=True)
class Procedure:
    """A procedure.

    is_transactional: whether it goes through the table handle, and so may be part of a transaction. has_dry_run:
    whether it can say what it would do, or changes nothing.
    """

    name: str
    parameters: Sequence[Parameter]
    columns: pa.Schema
    run: Callable[[Arguments], ProcedureRows]
    is_transactional: bool = True
    has_dry_run: bool = True
    by_name: Mapping[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.parameters})

    def call(self, run: Run, given: Sequence[Given], place: Place) -> Rows:
        """Check the arguments and run the procedure."""
        if run.session.transaction is not None and not self.is_transactional:
            raise place.error(
                f"{self.name} cannot be part of a transaction", hint="COMMIT or ROLLBACK first", kind=InvalidInput
            )
        if run.is_dry_run and not self.has_dry_run:
            raise place.error(f"{self.name} has no dry run", kind=Unsupported)
        arguments = self._bind(run, given, place)
        with pointing_at(arguments.place("table")):
            return Rows.of(self.columns, list(self.run(arguments)))

    def _bind(self, run: Run, given: Sequence[Given], place: Place) -> Arguments:
        values: dict[str, Any] = {}
        places: dict[str, Place] = {}
        for at, each in enumerate(given):
            parameter = self._parameter(each, at)
            if parameter.name in places:
                raise each.place.error(f"the argument {parameter.name} is given twice", kind=InvalidInput)
            places[parameter.name] = each.value
            values[parameter.name] = _converted(run, each.value, parameter)
        missing = [each.name for each in self.parameters if each.is_required and values.get(each.name) is None]
        if missing:
            raise places.get(missing[0], place).error(
                f"{self.name} needs the argument {missing[0]}", hint=self._signature(), kind=InvalidInput
            )
        return Arguments(run, values, places, place, run.engine)

    def _parameter(self, given: Given, at: int) -> Parameter:
        if given.name is None:
            if at < len(self.parameters):
                return self.parameters[at]
            raise given.place.error(
                f"{self.name} takes at most {len(self.parameters)} arguments", hint=self._signature(), kind=InvalidInput
            )
        found = self.by_name.get(given.name.lower())
        if found is None:
            near = get_close_matches(given.name.lower(), self.by_name, n=1)
            hint = f"Did you mean {near[0]}?" if near else self._signature()
            where = given.name_place or given.place
            raise where.error(f"{self.name} has no argument {given.name}", hint=hint, kind=InvalidInput)
        return found

    def _signature(self) -> str:
        shown = [f"{p.name} {p.kind}" if p.is_required else f"[{p.name} {p.kind}]" for p in self.parameters]
        return f"Its arguments are: {', '.join(shown)}"


def required(name: str, kind: Kind = Kind.STRING) -> Parameter:
    """Return a parameter that must be given."""
    return Parameter(name, kind, is_required=True)


def optional(name: str, kind: Kind = Kind.STRING) -> Parameter:
    """Return a parameter that may be left out, or be null."""
    return Parameter(name, kind)


TABLE = required("table")


def _converted(run: Run, place: Place, parameter: Parameter) -> Any:
    cursor = Cursor(place.source, place.start, place.end, run.parameters)
    value = constant_value(run, cursor)
    cursor.expect_end()
    if value is None:
        return None
    if parameter.kind is Kind.TIMESTAMP and session_zone(run) is None:
        value = evaluate(run, place, "TIMESTAMP")
    try:
        return _CONVERTERS[parameter.kind](run, value)
    except (ValueError, TypeError):
        raise place.error(
            f"the argument {parameter.name} takes {parameter.kind}, not {place.text}", kind=InvalidInput
        ) from None


def _to_string(_run: Run, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return str(value)


def _to_long(_run: Run, value: object) -> int:
    number = whole_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not -(2**63) <= number < 2**63:
        raise TypeError(value)
    return number


def _to_int(run: Run, value: object) -> int:
    number = _to_long(run, value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(value)
    return number


def _to_double(_run: Run, value: object) -> float:
    if isinstance(value, bool | list | dict | datetime.date):
        raise TypeError(value)
    return float(value)  # type: ignore[arg-type]


def _to_boolean(_run: Run, value: object) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _to_timestamp(run: Run, value: object) -> datetime.datetime:
    moment = None if isinstance(value, int | float) else as_moment(value, session_zone(run))
    if moment is None:
        raise TypeError(value)
    return moment


def _to_longs(run: Run, value: object) -> list[int]:
    return [_to_long(run, each) for each in _items(value)]


def _to_strings(run: Run, value: object) -> list[str]:
    return [_to_string(run, each) for each in _items(value)]


def _items(value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise TypeError(value)
    return list(value)


def _to_map(run: Run, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return {_to_string(run, key): _to_text(run, each) for key, each in value.items()}


def _to_text(run: Run, value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _to_string(run, value)


_CONVERTERS: Mapping[Kind, Callable[[Run, object], Any]] = {
    Kind.STRING: _to_string,
    Kind.LONG: _to_long,
    Kind.INT: _to_int,
    Kind.DOUBLE: _to_double,
    Kind.BOOLEAN: _to_boolean,
    Kind.TIMESTAMP: _to_timestamp,
    Kind.LONGS: _to_longs,
    Kind.STRINGS: _to_strings,
    Kind.MAP: _to_map,
}
