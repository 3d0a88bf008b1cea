"""Complete the words of a statement: keywords, names of tables and views, and columns of the tables that it names."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from icefield.errors import IcefieldError
from icefield.expr.query.lexer import lex
from icefield.lake import Lake

# What may separate words; a dot does not, so that `shop.or` is completed as a whole.
DELIMITERS = " \t\n`()=<>,;+*/'\""
# After these words a table follows.
_BEFORE_TABLES = frozenset(
    {"from", "join", "into", "table", "update", "overwrite", "using", "describe", "desc", "view"}
)
_NAME = re.compile(r"[^\s`()=<>,;+*/'\"]*\Z")

_KEYWORDS = """
ADD ALTER ANALYZE AND AS ASC BEGIN BETWEEN BRANCH BY CALL CASE CAST COLUMN COLUMNS COMMENT COMMIT CREATE CROSS DELETE
DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN EXTENDED FIELD FIRST FROM FULL GROUP HAVING IDENTIFIER IF
IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCATION MATCHED MERGE NAMESPACE NAMESPACES
NOT NULL NULLS OF OFFSET ON OR ORDER ORDERED OUTER OVER OVERWRITE PARTITION PARTITIONED PARTITIONS PROPERTIES PURGE
QUALIFY RENAME REPLACE RESTORE RETAIN RIGHT ROLLBACK SCHEMA SELECT SEMI SET SHOW SNAPSHOT SOURCE TABLE TABLES TAG
TARGET TBLPROPERTIES THEN TIMESTAMP TO TRUNCATE UNION UNSET UPDATE USE USING VALUES VERSION VIEW VIEWS WHEN WHERE
WINDOW WITH WRITE
"""
KEYWORDS = tuple(_KEYWORDS.split())


class Names:
    """The names of a lake, read once for a statement; a name that cannot be read is not offered."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._columns: dict[str, list[str]] = {}

    @cached_property
    def tables(self) -> list[str]:
        """The tables and views, by full name."""
        return _or_none(lambda: [*self._lake.tables(), *self._lake.views()])

    def columns(self, name: str) -> list[str]:
        """Return the columns of a table or view, by its full name."""
        if name not in self._columns:
            self._columns[name] = _or_none(lambda: self._read_columns(name))
        return self._columns[name]

    def _read_columns(self, name: str) -> list[str]:
        opened = self._lake.view(name) if self._lake.has_view(name) else self._lake.table(name)
        return [field.name for field in opened.schema.fields]


def complete(text: str, names: Names) -> list[str]:
    """Return what the last word of an unfinished statement may become, best first."""
    found = _NAME.search(text)
    word = found.group() if found else ""
    before = [token.text.lower() for token in lex(text[: len(text) - len(word)])]
    tables = _beginning(names.tables, word)
    if before and before[-1] in _BEFORE_TABLES:
        return tables
    columns = [column for table in _mentioned(text, names.tables) for column in names.columns(table)]
    owner, dot, start = word.rpartition(".")
    if dot:
        # An alias is not looked up: the columns of all tables of the statement are offered after it.
        qualified = [f"{owner}.{column}" for column in _beginning(columns, start)]
        return list(dict.fromkeys([*tables, *qualified]))
    keywords = _beginning(KEYWORDS, word)
    if word.islower():
        keywords = [keyword.lower() for keyword in keywords]
    spaced = [f"{keyword} " for keyword in keywords]
    return list(dict.fromkeys([*_beginning(columns, word), *spaced, *(tables if word else [])]))


def _mentioned(text: str, tables: Sequence[str]) -> list[str]:
    lowered = re.sub(r"[`\s]", " ", text.lower())
    words = set(re.findall(r"[^\s(),;=<>]+", lowered))
    return [name for name in tables if name.lower() in words or name.lower().rpartition(".")[2] in words]


def _beginning(candidates: Sequence[str], start: str) -> list[str]:
    return [each for each in candidates if each.lower().startswith(start.lower())]


def _or_none(read: Callable[[], list[str]]) -> list[str]:
    try:
        return read()
    except IcefieldError:
        return []
