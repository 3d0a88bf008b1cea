"""Check table properties and the options of writes, before anything is changed.

A property that icefield reads must parse. Of Iceberg's other properties, those that would promise something that does
not happen are refused, and the rest are accepted with a warning, for engines that do read them. A key that looks
misspelt is refused with the one that was probably meant. Keys outside Iceberg's namespaces are the user's own.

    check_new_properties({"write.format.default": "orc"})       InvalidInput
    check_new_properties({"write.wap.enabled": "true"})         IcefieldWarning: … has no effect in icefield: …
    check_new_properties({"write.parqet.page-version": "v2"})   InvalidInput: … Did you mean write.parquet.page-version?
    check_new_properties({"write.parqet.x": "1"})               InvalidInput: … Did you mean write.parquet.x?
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from icefield.errors import InvalidInput, warn_caller
from icefield.properties.iceberg import NO_EFFECT, NO_EFFECT_OF_COLUMNS, REFUSED, RESERVED, USED_ELSEWHERE
from icefield.properties.table import (
    COLUMN_PROPERTIES,
    FORMAT_VERSION_KEY,
    OPTIONAL_PROPERTIES,
    SHORT_OPTIONS,
    TABLE_PROPERTIES,
    WRITE_OPTIONS,
)

NAMESPACES = ("write.", "read.", "commit.", "history.", "gc.", "compatibility.", "encryption.")
_NEAR = 0.8  # of 1: how alike two keys must be for one to be taken for a misspelling of the other
_VERY_NEAR = 0.9  # the same for keys outside of the namespaces, which are users' own
_NEAR_WORD = 0.75  # the same for one word of a key
_READ = {known.key: known for known in (*TABLE_PROPERTIES, *OPTIONAL_PROPERTIES)}

_KNOWN = tuple(key for key in (*_READ, *NO_EFFECT, *REFUSED, *USED_ELSEWHERE) if key.startswith(NAMESPACES))
_PREFIXES = (*(column.prefix for column in COLUMN_PROPERTIES), *NO_EFFECT_OF_COLUMNS)
_GROUPS = sorted({key[:at] for key in (*_KNOWN, *_PREFIXES) for at, letter in enumerate(key) if letter == "."})


def check_new_properties(updates: Mapping[str, str]) -> None:
    """Refuse properties that cannot be set, and warn of those that have no effect here."""
    check_properties(updates)
    for key in updates:
        why = _no_effect(key)
        if why is not None:
            warn_caller(f"table property {key} is stored, but has no effect in icefield: {why}")


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that are not strings, do not parse, cannot be set, or are misspelt."""
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"table properties are strings, got {key!r}: {value!r}")
    for key in properties:
        _check_key(key, properties)


def _check_key(key: str, properties: Mapping[str, str]) -> None:
    if key == FORMAT_VERSION_KEY:
        raise InvalidInput(f"{FORMAT_VERSION_KEY} is not a table property", hint="Give it as format_version")
    if key in RESERVED:
        raise InvalidInput(f"{key} cannot be set: it is reserved for the table's own state")
    if key in REFUSED:
        why, hint = REFUSED[key]
        raise InvalidInput(f"table property {key} cannot be set: {why}", hint=hint)
    if key in _READ:
        _READ[key].read(properties)
        return
    for column in COLUMN_PROPERTIES:
        if key.startswith(column.prefix):
            column.of(key.removeprefix(column.prefix)).read(properties)
            return
    meant = None if _is_known(key) else _find_meant(key)
    if meant is not None:
        raise InvalidInput(f"unknown table property {key!r}", hint=f"Did you mean {meant}?")


def _no_effect(key: str) -> str | None:
    if key in NO_EFFECT:
        return NO_EFFECT[key]
    for prefix, why in NO_EFFECT_OF_COLUMNS.items():
        if key.startswith(prefix):
            return why
    return "neither icefield nor Iceberg knows it" if key.startswith(NAMESPACES) and not _is_known(key) else None


def _is_known(key: str) -> bool:
    return key in _READ or key in NO_EFFECT or key in USED_ELSEWHERE or key.startswith(_PREFIXES)


def _find_meant(key: str) -> str | None:
    """Return what an unknown key is a misspelling of; None for a key that resembles none."""
    if key.startswith(NAMESPACES):
        return _find_near_key(key) or _find_near_group(key)
    # A key of the user's own, unless it is one of Iceberg's but for a slip in its first word.
    first, _, rest = key.strip().partition(".")
    near = get_close_matches(first.lower(), [name.rstrip(".") for name in NAMESPACES], 1, _NEAR_WORD)
    return (_find_near_key(f"{near[0]}.{rest}") if near else None) or _find_near_key(key, _VERY_NEAR)


def _find_near_key(key: str, alike: float = _NEAR) -> str | None:
    head, marker, column = key.partition(".column.")
    word, words = (head + marker, _PREFIXES) if marker else (key, _KNOWN)
    near = get_close_matches(word.lower(), words, 1, alike)
    return f"{near[0]}{column}" if near else None


def _find_near_group(key: str) -> str | None:
    """Return a key with its first unknown group corrected, such as parquet in write.parquet.*."""
    words = key.split(".")
    for at in range(1, len(words) - 1):
        above = ".".join(words[:at])
        if f"{above}.{words[at]}" in _GROUPS:
            continue
        siblings = [group.rpartition(".")[2] for group in _GROUPS if group.rpartition(".")[0] == above]
        near = get_close_matches(words[at].lower(), siblings, 1, _NEAR_WORD)
        return ".".join([above, near[0], *words[at + 1 :]]) if near else None
    return None


def with_options(
    properties: Mapping[str, str], options: Mapping[str, str], columns: Collection[str], others: Collection[str] = ()
) -> dict[str, str]:
    """Return a table's properties as one write has them, whose options go before.

    An option goes by its property's key, or by the short name that Iceberg's Spark writer has for it. Refuses one that
    no write looks at, so that a slip of the pen is not taken for a setting. others: what else the caller takes.
    """
    given = {SHORT_OPTIONS.get(key, key): value for key, value in options.items()}
    if len(given) < len(options):
        raise InvalidInput("an option is given twice: by its short name and by its key", hint="Give it once")
    for key in given:
        _check_option(key, columns, others)
    check_properties(given)
    return {**properties, **given}


def _check_option(key: str, columns: Collection[str], others: Collection[str]) -> None:
    if key in WRITE_OPTIONS:
        return
    for column in COLUMN_PROPERTIES:
        name = key.removeprefix(column.prefix)
        if name in columns and name != key:
            return
        if name != key:
            raise InvalidInput(f"option {key!r} names a column that the table does not have: {name!r}")
    by_column = (f"{column.prefix}NAME" for column in COLUMN_PROPERTIES)
    known = [*others, *sorted(SHORT_OPTIONS), *sorted(WRITE_OPTIONS), *by_column]
    near = get_close_matches(key, known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}"
    raise InvalidInput(f"unknown {'' if others else 'write '}option {key!r}", hint=hint)
