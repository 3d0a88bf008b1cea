"""A lake with the tables of `tables.py`, each written when it is first asked for."""

from typing import Protocol

from icefield import Lake, Table


class Buildable(Protocol):
    """A table that can be written, under a name of its own."""

    @property
    def name(self) -> str: ...

    def build(self, lake: Lake) -> Table: ...


class Gallery:
    """Tables that are written once."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._tables: dict[str, Table] = {}

    def table(self, case: Buildable) -> Table:
        """Return a table, written."""
        if case.name not in self._tables:
            self._tables[case.name] = case.build(self.lake)
        return self._tables[case.name]
