"""Changes of columns, partitions and order, drawn at random and made in a table and its model."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.histories.features import Features
from tests.histories.model import KEY_ID, TABLE, Model
from tests.histories.shapes import draw_default, draw_field, draw_name, draw_partition_term

from icefield.dml.evolution import TableEvolution
from icefield.table.table import Table
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    TimestampNsType,
    TimestampType,
    Type,
)
from icefield.types.schema import renumber

FARTHEST_DAY = 106_000  # that nanoseconds can count to


class Evolving:
    """One `evolve` block: every change is said to the table and made in the model."""

    def __init__(self, random: Random, table: Table, model: Model, change: TableEvolution, features: Features) -> None:
        self._random = random
        self._table = table
        self._model = model
        self._change = change
        self._features = features

    def change_columns(self) -> str:
        """Make one change of columns; return its name."""
        changes: list[Callable[[], object]] = [
            *(self._add, self._add, self._drop, self._rename, self._swap_names, self._add_again),
            *(self._widen, self._widen, self._move, self._make_optional, self._set_default, self._set_doc),
        ]
        chosen = self._random.choice(changes)
        chosen()
        return chosen.__name__.removeprefix("_")

    def change_layout(self) -> str:
        """Make one change of the partition fields or the order; return its name."""
        live = [f.name for f in self._table.spec.fields if str(f.transform) != "void"]
        match self._random.randrange(5):
            case 0 | 1:
                if term := draw_partition_term(self._random, self._model.schema, self._features):
                    self._change.add_partition_field(term)
                return "add_partition_field"
            case 2 if live:
                self._change.drop_partition_field(self._random.choice(live))
                return "drop_partition_field"
            case 3 if live:
                name = f"p{self._random.randrange(100)}"
                self._change.rename_partition_field(self._random.choice(live), name)
                return "rename_partition_field"
            case _:
                term = draw_partition_term(self._random, self._model.schema, self._features)
                self._change.set_sort_order([f"{term} desc"] if term else [])
                return "set_order"

    def _add(self) -> None:
        parent, siblings = self._random.choice(list(self._model.parents().items()))
        self._add_to(parent, draw_name(self._random, [f.name for f in siblings]))

    def _add_to(self, parent: int, name: str) -> None:
        drawn = draw_field(self._random, name, self._features.kinds_of(self._model.format_version), depth=1)
        default = None
        if self._model.format_version >= 3:
            default = draw_default(self._random, drawn.type, self._features)
        drawn = replace(drawn, required=drawn.required and default is not None)
        siblings = self._model.parents()[parent]
        at = self._random.randrange(len(siblings) + 1)
        (added,) = renumber((replace(drawn, **_defaults(default)),), self._model.draw_id, {})
        self._change.add_column(
            self._path(parent, name),
            drawn.type,
            default=default,
            required=drawn.required,
            **_position(siblings, at),
        )
        self._model.add(parent, added, at)

    def _drop(self) -> None:
        dropped = self._any(lambda f: f.field_id != KEY_ID)
        if dropped:
            self._drop_field(dropped)

    def _drop_field(self, dropped: NestedField) -> None:
        self._change.drop_column(self._name(dropped))
        self._model.drop(dropped.field_id)

    def _add_again(self) -> None:
        """Drop a column and add another under its name."""
        dropped = self._any(lambda f: f.field_id != KEY_ID and self._has_siblings(f))
        if dropped:
            parent = self._model.parent_of(dropped.field_id)
            self._drop_field(dropped)
            self._add_to(parent, dropped.name)

    def _rename(self) -> None:
        renamed = self._any()
        assert renamed
        siblings = self._model.parents()[self._model.parent_of(renamed.field_id)]
        self._rename_to(renamed, draw_name(self._random, [f.name for f in siblings]))

    def _swap_names(self) -> None:
        siblings = self._random.choice(list(self._model.parents().values()))
        if len(siblings) > 1:
            one, other = self._random.sample(siblings, 2)
            self._rename_to(one, "between")
            self._rename_to(other, one.name)
            self._rename_to(self._model.field(one.field_id), other.name)

    def _rename_to(self, renamed: NestedField, name: str) -> None:
        self._change.rename_column(self._name(renamed), name)
        self._model.change(renamed.field_id, name=name)

    def _widen(self) -> None:
        widened = self._any(lambda f: self._wider(f) is not None)
        if widened:
            kind = self._wider(widened)
            assert kind
            self._change.update_column_type(self._name(widened), kind)
            self._model.widen(widened.field_id, kind)

    def _wider(self, old: NestedField) -> Type | None:
        match old.type:
            case IntegerType():
                return LongType()
            case FloatType():
                return DoubleType()
            case DecimalType(precision, scale):
                return DecimalType(precision + 9, scale) if precision < 29 else None
            case DateType() if self._model.format_version >= 3 and self._features.dates_become_timestamps:
                values = [*self._model.values_of(old.field_id), old.initial_default, old.write_default]
                near = all(value is None or abs(value) < FARTHEST_DAY for value in values)
                in_nanoseconds = near and TimestampNsType() in self._features.newer_kinds
                return TimestampNsType() if in_nanoseconds else TimestampType()
            case _:
                return None

    def _move(self) -> None:
        moved = self._any()
        assert moved
        siblings = self._model.parents()[self._model.parent_of(moved.field_id)]
        others = tuple(f for f in siblings if f != moved)
        if others:
            at = self._random.randrange(len(siblings))
            self._change.move_column(self._name(moved), **(_position(others, at) or {"after": others[-1].name}))
            self._model.move(moved.field_id, at)

    def _make_optional(self) -> None:
        loosened = self._any(lambda f: f.required and f.field_id != KEY_ID)
        if loosened:
            self._change.make_optional(self._name(loosened))
            self._model.change(loosened.field_id, required=False)

    def _set_default(self) -> None:
        chosen = self._any(lambda f: f.field_id != KEY_ID)
        if chosen and self._model.format_version >= 3:
            default = draw_default(self._random, chosen.type, self._features)
            self._change.set_default(self._name(chosen), default)
            self._model.change(chosen.field_id, write_default=_defaults(default)["write_default"])

    def _set_doc(self) -> None:
        described = self._any()
        assert described
        self._change.set_doc(self._name(described), "what it is")
        self._model.change(described.field_id, doc="what it is")

    def _any(self, fits: Callable[[NestedField], bool] = lambda _: True) -> NestedField | None:
        """Choose a column, or a field of a struct at any depth."""
        fitting = [f for siblings in self._model.parents().values() for f in siblings if fits(f)]
        return self._random.choice(fitting) if fitting else None

    def _has_siblings(self, one: NestedField) -> bool:
        return len(self._model.parents()[self._model.parent_of(one.field_id)]) > 1

    def _name(self, one: NestedField) -> str:
        return self._model.schema.name_of(one.field_id)

    def _path(self, parent: int, name: str) -> str:
        return name if parent == TABLE else f"{self._model.schema.name_of(parent)}.{name}"


def _defaults(default: Any) -> dict[str, Any]:
    known = EMPTY_STRUCT if default == {} else default
    return {"initial_default": known, "write_default": known}


def _position(siblings: tuple[NestedField, ...], at: int) -> dict[str, Any]:
    """Say a place among siblings in one of the ways there are."""
    if at == 0:
        return {"first": True}
    if at == len(siblings):
        return {}
    return {"before": siblings[at].name} if at % 2 else {"after": siblings[at - 1].name}
