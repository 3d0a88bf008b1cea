"""A table that Iceberg Java keeps in its Hadoop catalog, and we in ours; whoever wrote last hands it over."""

import shutil
from pathlib import Path

from icefield import Lake, Table
from icefield.catalog.catalog import PointerSwap
from icefield.errors import NoSuchTable
from icefield.model.names import parse_table_name


class HandedTable:
    """One table in both catalogs. folder: of the lake; Java's warehouse is in it."""

    def __init__(self, lake: Lake, folder: Path, namespace: str, name: str) -> None:
        self.lake, self.namespace, self.name = lake, namespace, name
        self.location = folder / "java" / namespace / name
        self.metadata = self.location / "metadata"

    def ours(self) -> Table:
        """Open the table as Java left it."""
        name = parse_table_name(f"{self.namespace}.{self.name}")
        new = f"file://{self.metadata}/v{self._number()}.metadata.json"
        try:
            old = self.lake.catalog.pointer(name)
        except NoSuchTable:
            old = None
            if (self.namespace,) not in self.lake.catalog.list_namespaces(None):
                self.lake.create_namespace(self.namespace)
        self.lake.catalog.swap([PointerSwap(name, old, new)])
        return self.lake.table(str(name))

    def hand_over(self, table: Table) -> None:
        """Let Java go on from what we wrote."""
        number = self._number() + 1
        shutil.copy(table.metadata_location.removeprefix("file://"), self.metadata / f"v{number}.metadata.json")
        (self.metadata / "version-hint.text").write_text(str(number))

    def _number(self) -> int:
        hint = self.metadata / "version-hint.text"
        return int(hint.read_text()) if hint.exists() else 0
