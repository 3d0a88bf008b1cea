"""Options of `spark.read.format("icefield")` and `df.write.format("icefield")`, checked once.

Names follow Iceberg's where it has them. Raises InvalidInput for an unknown, invalid or missing option.
"""

import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from icefield.config.configuration import suggest
from icefield.config.connect import is_there, open_lake
from icefield.config.file import ProcessEnvironment
from icefield.config.sources import find_settings
from icefield.config.target import scheme_of
from icefield.errors import InvalidInput, NotFound, Unsupported
from icefield.lake import Lake, LakeOpener
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN
from icefield.plan.versions import AsOf, ResolvedVersion, resolve_version
from icefield.types.calendar import EPOCH

LAKE_PROPERTY = "lake-property."
OF_THE_LAKE = ("lake", "warehouse", "catalog", LAKE_PROPERTY)
TIME_TRAVEL = ("snapshot-id", "as-of-timestamp", "branch", "tag")
# The prefix that Spark's own catalog adds to the options of its tables.
KEPT_OPTION = "option."
PROVIDER = "provider"
INSTEAD = "Create tables with lake.create_table, and name one in SQL by CREATE TEMP VIEW … USING icefield OPTIONS (…)"
TO_READ = ("table", "path", "columns", "where", *TIME_TRAVEL, *OF_THE_LAKE)
WRITE_PROPERTY = "write."
TO_WRITE = (
    "table",
    "path",
    "branch",
    "idempotency-key",
    "overwrite-mode",
    "merge-schema",
    WRITE_PROPERTY,
    *OF_THE_LAKE,
)
# Prefixes of families of options.
PREFIXES = (LAKE_PROPERTY, WRITE_PROPERTY)


@dataclass(frozen=True)
class SourceOptions:
    """The options of the user, and the default lake."""

    given: Mapping[str, str]
    default_lake: LakeOpener | None

    def check(self, known: tuple[str, ...]) -> None:
        """Raise InvalidInput for an unknown option."""
        if PROVIDER in self.given or any(key.startswith(KEPT_OPTION) for key in self.given):
            # They are no longer available when a query runs.
            raise Unsupported(
                "CREATE TABLE … USING icefield does not create a table of a lake: Spark's catalog does not pass "
                "the options and location of its tables to a Python source",
                hint=INSTEAD,
            )
        prefixes = tuple(name for name in known if name in PREFIXES)
        for key in self.given:
            if key not in known and not key.startswith(prefixes):
                names = (f"{name}*" if name in PREFIXES else name for name in known)
                raise InvalidInput(f"format icefield has no option {key!r} here", hint=suggest(key, names))

    @property
    def table(self) -> str:
        """The table's name, from `load("shop.orders")`, `save("shop.orders")` or an option."""
        named = [self.given[key] for key in ("table", "path") if self.given.get(key)]
        if len(named) != 1:
            problem = "names two tables" if named else "needs the name of a table"
            hint = 'Write .load("shop.orders"), or .option("table", …).'
            if not self.given:
                # With a list of columns, Spark creates its entry without calling the source; a query then ends up here.
                hint += f" For an entry that CREATE TABLE … USING icefield left in Spark's catalog: drop it. {INSTEAD}"
            raise InvalidInput(f"format icefield {problem}", hint=hint)
        return named[0]

    @property
    def columns(self) -> list[str] | None:
        """The columns to read; None for all."""
        text = self.given.get("columns")
        return None if text is None else [name.strip() for name in text.split(",") if name.strip()]

    @property
    def where(self) -> str | None:
        """The filter for the rows."""
        return self.given.get("where")

    @property
    def branch(self) -> str:
        """The branch to write to."""
        return self.given.get("branch", MAIN)

    @property
    def write_properties(self) -> dict[str, str]:
        """Write properties that override the table's."""
        return {key: value for key, value in self.given.items() if key.startswith(WRITE_PROPERTY)}

    @property
    def merges_schema(self) -> bool:
        """Whether additional columns of the rows are added to the table."""
        return self._one_of("merge-schema", "false", "true") == "true"

    @property
    def replaces_partitions(self) -> bool:
        """Whether an overwrite replaces only the partitions that the rows belong to."""
        return self._one_of("overwrite-mode", "static", "dynamic") == "dynamic"

    def open_lake(self) -> Lake:
        """Open the named lake, or else the one that the source was registered with."""
        said = {key: self.given[key] for key in ("lake", "warehouse", "catalog") if key in self.given}
        properties = {
            key.removeprefix(LAKE_PROPERTY): value for key, value in self.given.items() if key.startswith(LAKE_PROPERTY)
        }
        if self.default_lake is not None and not said and not properties:
            return self.default_lake()
        lake = said.pop("lake", None)
        named = said if lake is None else {**said, "target": lake}
        return _open({**named, "properties": properties} if properties else named)

    def resolve_version(self, metadata: TableMetadata) -> ResolvedVersion:
        """Resolve the version to read."""
        said = [key for key in TIME_TRAVEL if key in self.given]
        if len(said) > 1:
            raise InvalidInput(f"options {' and '.join(said)} each name a version", hint="Give one of them")
        if not said:
            return resolve_version(metadata, None)
        key, text = said[0], self.given[said[0]]
        if key in ("branch", "tag"):
            metadata.ref_head(text)  # raises for an unknown ref, even if it could be parsed as a time
        return resolve_version(metadata, _as_of(key, text))

    def _one_of(self, key: str, default: str, other: str) -> str:
        word = self.given.get(key, default).lower()
        if word not in (default, other):
            raise InvalidInput(f"option {key} must be {default} or {other}, but is {word!r}")
        return word


def _open(said: Mapping[str, object]) -> Lake:
    """Open an existing lake; reading does not create one."""
    try:
        settings = find_settings(said, ProcessEnvironment(os.environ, Path.cwd()))
    except InvalidInput as error:
        raise InvalidInput(error.message, hint=f'{error.hint or ""} Or set .option("lake", …)'.strip()) from error
    if scheme_of(settings.target) == "memory":
        raise Unsupported("a lake in memory exists only in its process; Spark's workers cannot read it")
    if not is_there(settings):
        raise NotFound(f"there is no lake at {settings.target}", hint="Relative directories start at Spark's driver")
    return open_lake(settings)


def _as_of(key: str, text: str) -> AsOf:
    if key == "snapshot-id":
        return _whole(key, text)
    if key == "as-of-timestamp" and text.isascii() and text.isdigit():  # in milliseconds, as in Iceberg
        return EPOCH + datetime.timedelta(milliseconds=int(text))
    return text


def _whole(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInput(f"option {key} must be a number, but is {text!r}") from error
