"""Namespaces that statements name, and USE, which chooses the current one. Raises NoSuchNamespace."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from icefield.catalog.catalog import walk_namespaces
from icefield.errors import InvalidInput, NoSuchNamespace
from icefield.model.names import Namespace
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name

NAMESPACE_WORDS = ("namespace", "database", "schema")


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
            raise missing_namespace(run, self.name)
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


def find_namespace(run: Run, name: Name) -> Namespace | None:
    """Return a namespace by its name, which may begin with that of the catalog; None if there is none."""
    catalog = run.lake.catalog
    candidates = [name.parts]
    if len(name.parts) > 1 and name.parts[0].lower() == catalog.name.lower():
        candidates.append(name.parts[1:])
    for parts in candidates:
        try:
            catalog.namespace_properties(parts)
        except (NoSuchNamespace, InvalidInput):
            continue
        return parts
    return None


def open_namespace(run: Run, name: Name) -> Namespace:
    """Return a namespace by its name."""
    found = find_namespace(run, name)
    if found is None:
        raise missing_namespace(run, name)
    return found


def missing_namespace(run: Run, name: Name) -> Exception:
    """Return the error of a namespace that does not exist, with names that are near."""
    known = [".".join(each) for each in walk_namespaces(run.lake.catalog.list_namespaces)]
    near = get_close_matches(str(name).lower(), [each.lower() for each in known], n=3)
    exact = [each for each in known if each.lower() in near]
    hint = f"Did you mean {' or '.join(exact)}?" if exact else f"There is: {', '.join(known[:10]) or 'none'}"
    return name.place.error(f"no namespace {name} in the lake", hint=hint, kind=NoSuchNamespace)


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that match a pattern of SHOW: `*` is any text, `|` separates alternatives, case is ignored."""
    known = list(names)
    if pattern is None:
        return known
    found: set[str] = set()
    for part in pattern.strip().split("|"):
        try:
            one = re.compile(part.replace("*", ".*"), re.IGNORECASE)
        except re.error:
            continue  # as Spark does
        found.update(name for name in known if one.fullmatch(name))
    return [name for name in known if name in found]


def parse_pattern(cursor: Cursor) -> str | None:
    """Parse [LIKE] 'pattern'."""
    return None if not cursor.accept("like") and cursor.is_at_end else cursor.string("a pattern")
