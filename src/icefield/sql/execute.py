"""Run SQL: find the parser of a statement by its first word, parse it, execute it, and return its result.

The parsers of a subject are in the package of the subject, in a dictionary by first word. What is not a statement of
ours is left to Spark, or refused at its first word.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from icefield.engine.choose import LOCAL, EngineName, check_engine
from icefield.engine.rows import has_session, is_spark, load_spark_engine
from icefield.errors import IcefieldError, InvalidInput, Unsupported
from icefield.expr.query.lexer import LexemeKind, lex
from icefield.expr.query.tokens import quoted
from icefield.lake import Lake
from icefield.model.names import TableName
from icefield.sql.commands.statements import COMMANDS
from icefield.sql.commands.use import Use
from icefield.sql.query.read import open_relation
from icefield.sql.query.spark_statements import SparkStatement
from icefield.sql.query.statements import QUERIES
from icefield.sql.query.temporary_views import CacheTable, ClearCache, UncacheTable
from icefield.sql.rows.statements import CHANGES
from icefield.sql.rows.transactions import Begin, End
from icefield.sql.schema.statements import DEFINITIONS
from icefield.sql.session import Explained, Rows, Run, SqlSession, Statement
from icefield.sql.syntax.cursor import Cursor, Name, Parameters
from icefield.sql.syntax.place import Place, as_written, point_at, pointing_at
from icefield.sql.syntax.script import check_single, split_script
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema

Parser = Callable[[Cursor], Statement]
PARSERS: Mapping[str, Parser] = {**QUERIES, **DEFINITIONS, **CHANGES, **COMMANDS}

# Statements that change the session of the lake or of Spark, and no table.
_OF_THE_SESSION = (Begin, End, Use, CacheTable, UncacheTable, ClearCache, SparkStatement)
_EXPLAIN_MODES = ("extended", "codegen", "cost", "formatted")
# Settings of the session that are both true, and what they are by default.
_NAMES_IN_DOUBLE_QUOTES = {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "false"}
_PLAN = pa.schema([pa.field("plan", pa.string())])


class Statements:
    """Runs statements of one lake, one after another."""

    def __init__(self, lake: Lake) -> None:
        self._session = SqlSession(lake)

    def execute(
        self,
        text: str,
        args: Mapping[str, Any] | Sequence[Any] | None,
        frames: Mapping[str, Any],
        engine: EngineName | None = None,
        *,
        is_dry_run: bool = False,
    ) -> Any:
        """Run one statement."""
        chosen = None if engine is None else check_engine(engine)
        run = Run(self._session, _parameters(args), frames, chosen, is_dry_run)
        return self._returned(self.run(text, run), run)

    def open(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        engine: EngineName | None = None,
        *,
        is_dry_run: bool = False,
    ) -> Rows | Any:
        """Run one statement; return rows of this process as they are, without a Spark session."""
        return self.run(text, Run(self._session, _parameters(args), {}, engine, is_dry_run))

    def read_view(self, name: TableName) -> Any:
        """Open a view as a DataFrame; what statements set up, such as a transaction, has no part in it."""
        text = ".".join(quoted(part) for part in (*name.namespace, name.name))
        parts, place = (*name.namespace, name.name), Place(text, 0, len(text))
        session = SqlSession(self._session.lake, probed=self._session.probed)
        try:
            return open_relation(Run(session, text=text), Name(parts, place))
        except IcefieldError as error:
            error.excerpt = error.position = None  # nobody wrote the text
            raise

    def execute_script(
        self,
        text: str,
        args: Mapping[str, Any] | None,
        frames: Mapping[str, Any],
        engine: EngineName | None = None,
    ) -> Iterator[Any]:
        """Run the statements of a script. If it fails, or is not read to its end, a transaction that it began ends."""
        session = self._session
        before = session.transaction
        try:
            for each in split_script(text):
                with as_written(text):
                    result = self.execute(each, args, frames, engine)
                if session.transaction is not None and is_spark(result):
                    # Its rows may be those of the transaction, which end with a rollback.
                    with pointing_at(Cursor(each).place):
                        result = load_spark_engine().computed_once(result, "read the query")
                yield result
        except BaseException:
            if before is None:
                self.roll_back()
            raise

    def roll_back(self) -> bool:
        """Roll back the open transaction; return whether there was one."""
        transaction, self._session.transaction = self._session.transaction, None
        if transaction is not None:
            transaction.rollback()
        return transaction is not None

    def run(self, text: str, run: Run) -> Rows | Any:
        """Parse and execute a statement; errors point at a part of its text."""
        cursor = Cursor(text, end=check_single(text), parameters=run.parameters)
        _refuse_names_in_double_quotes(text, run)
        try:
            statement = parse_statement(cursor)
            if run.is_dry_run and isinstance(statement, _OF_THE_SESSION):
                raise Unsupported("there is no dry run of a statement that changes the session")
            return statement.run(replace(run, text=text))
        except IcefieldError as error:
            point_at(error, Cursor(text).place)
            raise
        except RecursionError as error:
            raise InvalidInput(
                "the statement is nested too deeply", hint="Write it with fewer levels of parentheses and calls"
            ) from error

    def _returned(self, result: Rows | Any, run: Run) -> Any:
        if not isinstance(result, Rows):
            return result
        if run.engine == LOCAL:
            return result.table
        schema = schema_from_arrow(result.table.schema) if result.table.num_columns else Schema(())
        return load_spark_engine().from_arrow(result.table.to_reader(), schema, run.lake.spark)


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a statement, which is parsed and planned, but changes nothing."""

    statement: Statement
    mode: str
    place: Place

    def run(self, run: Run) -> Rows:
        """Return the explanation as one row."""
        if not isinstance(self.statement, Explained):
            raise self.place.error("EXPLAIN is for queries and for changes of rows", kind=Unsupported)
        return Rows.of(_PLAN, [[self.statement.explain(run, self.mode)]])


def is_query(text: str) -> bool:
    """Return whether a statement is a query, or EXPLAIN of one."""
    cursor = Cursor(text)
    if cursor.accept("explain"):
        cursor.accept_any(*_EXPLAIN_MODES)
    return cursor.peek() in QUERIES


def parse_statement(cursor: Cursor) -> Statement:
    """Parse one statement; a semicolon may end it."""
    if cursor.is_at_end:
        raise InvalidInput("there is no statement", hint="Give one SQL statement")
    if cursor.accept("explain"):
        mode = cursor.accept_any(*_EXPLAIN_MODES) or "simple"
        start = cursor.place
        return Explain(parse_statement(cursor), mode, start)
    word = cursor.peek()
    parser = PARSERS.get(word)
    if parser is None:
        near = get_close_matches(word, PARSERS, n=1)
        hint = f"Did you mean {near[0].upper()}?" if near else None
        raise cursor.error(f"no statement begins with {cursor.place.text!r}", hint=hint)
    return parser(cursor)


def _refuse_names_in_double_quotes(text: str, run: Run) -> None:
    """Refuse double quotes where the session takes what is in them for a name: here they are always around a string."""
    if '"' not in text or run.engine == LOCAL or not has_session(run.lake.source.sessions.session):
        return
    conf = run.lake.spark.conf
    if any(str(conf.get(key, default)).lower() != "true" for key, default in _NAMES_IN_DOUBLE_QUOTES.items()):
        return
    for token in lex(text):
        if token.kind is LexemeKind.STRING and token.text.startswith('"'):
            raise Place(text, token.start, token.end).error(
                f"the session takes {token.text} for a name, by spark.sql.ansi.doubleQuotedIdentifiers",
                hint="Write 'text' for a string, and `name` for a name",
                kind=Unsupported,
            )


def _parameters(args: Mapping[str, Any] | Sequence[Any] | None) -> Parameters:
    if isinstance(args, Mapping):
        return Parameters(named=dict(args))
    if args is not None and (isinstance(args, str | bytes) or not isinstance(args, Sequence)):
        raise InvalidInput(
            f"args takes a mapping for :name, or a list for ?, not {type(args).__name__}",
            hint="Give a single value as [value]",
        )
    return Parameters(positional=list(args or ()))
