"""Namespaces that statements name. Raises NoSuchNamespace."""

from difflib import get_close_matches

from icefield.catalog.catalog import walk_namespaces
from icefield.errors import IcefieldError, InvalidInput, NoSuchNamespace
from icefield.model.names import Namespace
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place

NAMESPACE_WORDS = ("namespace", "database", "schema")


def find_namespace(run: Run, name: Name) -> Namespace | None:
    """Return a namespace by its name, which may begin with that of the catalog; None if there is none."""
    catalog = run.lake.catalog
    candidates = [name.parts]
    if len(name.parts) > 1 and name.parts[0].lower() == catalog.name.lower():
        candidates.append(name.parts[1:])
    return next((parts for parts in candidates if has_namespace(run, parts)), None)


def open_namespace(run: Run, name: Name) -> Namespace:
    """Return a namespace by its name."""
    found = find_namespace(run, name)
    if found is None:
        raise missing_namespace(run, name.parts, name.place)
    return found


def has_namespace(run: Run, parts: Namespace) -> bool:
    """Return whether a namespace exists."""
    try:
        run.lake.catalog.namespace_properties(parts)
    except (NoSuchNamespace, InvalidInput):
        return False
    return True


def missing_namespace(run: Run, parts: Namespace, place: Place) -> IcefieldError:
    """Return the error of a namespace that does not exist, with names that are near."""
    known = [".".join(each) for each in walk_namespaces(run.lake.catalog.list_namespaces)]
    near = get_close_matches(".".join(parts).lower(), [each.lower() for each in known], n=3)
    exact = [each for each in known if each.lower() in near]
    hint = f"Did you mean {' or '.join(exact)}?" if exact else f"There is: {', '.join(known[:10]) or 'none'}"
    return place.error(f"no namespace {'.'.join(parts)} in the lake", hint=hint, kind=NoSuchNamespace)


def parse_namespace_word(cursor: Cursor) -> None:
    """Read NAMESPACE, DATABASE or SCHEMA."""
    cursor.expect_any(*NAMESPACE_WORDS)
