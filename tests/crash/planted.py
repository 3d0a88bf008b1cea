"""Mistakes that the crash tests must find, planted into a process that is thrown away afterwards."""

from collections.abc import Callable, Sequence
from typing import Any

from icefield.catalog.sql.catalog import SqlCatalog
from icefield.errors import CatalogError, CommitStateUnknown
from icefield.storage.local import LocalStore


def pointer_before(suffix: str) -> Callable[[], None]:
    """Write files of a kind only after the pointer was moved to what names them."""

    def plant() -> None:
        put, swap = LocalStore.put_new, SqlCatalog.swap
        late: list[Callable[[], None]] = []

        def put_later(self: LocalStore, location: str, data: bytes) -> None:
            if location.endswith(suffix):
                late.append(lambda: put(self, location, data))
            else:
                put(self, location, data)

        def swap_first(self: SqlCatalog, changes: Sequence[Any]) -> None:
            swap(self, changes)
            while late:
                late.pop()()

        LocalStore.put_new = put_later  # type: ignore[method-assign]
        SqlCatalog.swap = swap_first  # type: ignore[method-assign]

    return plant


def unknown_taken_for_failed() -> None:
    """Take a lost answer for a refusal, so that the files of a commit that may have landed are removed."""
    swap = SqlCatalog.swap

    def swap_or_fail(self: SqlCatalog, changes: Sequence[Any]) -> None:
        try:
            swap(self, changes)
        except CommitStateUnknown as unknown:
            raise CatalogError("it failed") from unknown

    SqlCatalog.swap = swap_or_fail  # type: ignore[method-assign]


def tables_one_by_one() -> None:
    """Move the pointers of a transaction one after the other."""
    swap = SqlCatalog.swap

    def swap_each(self: SqlCatalog, changes: Sequence[Any]) -> None:
        for change in changes:
            swap(self, [change])

    SqlCatalog.swap = swap_each  # type: ignore[method-assign]


PLANTED: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "pointer before metadata": pointer_before(".metadata.json"),
    "pointer before manifests": pointer_before(".avro"),
    "unknown taken for failed": unknown_taken_for_failed,
    "tables one by one": tables_one_by_one,
}
