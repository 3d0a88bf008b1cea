"""USE, which chooses the namespace of names of one part. Raises NoSuchNamespace."""

from dataclasses import dataclass

from icefield.errors import NoSuchNamespace
from icefield.sql.namespaces import NAMESPACE_WORDS, find_namespace, missing_namespace
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name


@dataclass(frozen=True)
class Use:
    """USE: the namespace that names of one part are looked up in."""

    name: Name
    is_catalog: bool = False

    def run(self, run: Run) -> Rows:
        """Choose it for later statements of this lake."""
        parts, catalog = self.name.parts, run.lake.catalog.name
        is_whole_catalog = len(parts) == 1 and parts[0].lower() == catalog.lower()
        if self.is_catalog and not is_whole_catalog:
            raise self.name.place.error(
                f"no catalog {self.name}", hint=f"The catalog of the lake is called {catalog}", kind=NoSuchNamespace
            )
        found = find_namespace(run, self.name) if not self.is_catalog else None
        if found is None and not is_whole_catalog:
            raise missing_namespace(run, self.name.parts, self.name.place)
        run.session.namespace = found or ()
        return NOTHING


def parse_use(cursor: Cursor) -> Use:
    """Parse USE [NAMESPACE | DATABASE | SCHEMA | CATALOG] name."""
    cursor.expect("use")
    is_catalog = False
    if cursor.token(1) is not None and cursor.peek(1) != ".":
        is_catalog = cursor.accept("catalog")
        if not is_catalog:
            cursor.accept_any(*NAMESPACE_WORDS)
    name = cursor.name("the name of a namespace")
    cursor.expect_end()
    return Use(name, is_catalog)
