"""Views of other engines: whatever their text, Spark finds nothing in it but what was checked."""

import json
import os
import random
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from tests.effort import DEEP, sample
from tests.expr.test_select import CASES
from tests.test_views import put_view

from icefield.errors import IcefieldError, Unsupported
from icefield.expr.query.functions import ALLOWED_FUNCTIONS, OPERATORS, PURE_FUNCTIONS, REFUSED_FUNCTIONS
from icefield.expr.query.schemas import SCHEMA_ARGUMENTS
from icefield.expr.query.select import parse_query
from icefield.expr.query.words import KEYWORDS
from icefield.lake import Lake
from icefield.model.view import SqlRepresentation, ViewDefinition
from icefield.spark.session.session import is_remote
from icefield.spark.views.guard import check_plan
from icefield.types.text import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.every_case, pytest.mark.spark]

# One of twelve mutated queries is accepted.
ACCEPTED = 1_500 if DEEP else 6
MOST_TRIES = 50 * ACCEPTED
SETTINGS: list[dict[str, str]] = [
    {},
    {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"},
    {"spark.sql.parser.escapedStringLiterals": "true"},
    {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
    {"spark.sql.legacy.setopsPrecedence.enabled": "true", "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true"},
    {"spark.sql.parser.singleCharacterPipeOperator.enabled": "true"},
    {"spark.sql.parser.quotedRegexColumnNames": "true"},
    {"spark.sql.caseSensitive": "true"},
]
# Queries as people write them; all are accepted, and Spark parses them.
QUERIES = [
    *(sql for sql, _, _ in CASES),
    "SELECT * FROM (SELECT a,b FROM t) PIVOT (sum(a) AS s FOR b IN (1 AS x, 2))",
    "SELECT * FROM VALUES (1,2),(3,4) AS v(a,b)",
    "SELECT exists(arr, x -> x > 1), x'1F', DATE'2020-01-01', a[0], m['k'], 1e5, .5, 1L, 1.5BD FROM t",
    "SELECT a FROM t TABLESAMPLE (10 PERCENT) AS t",
    "SELECT cast(a as struct<a: array<map<string,int>>>) FROM t",
    "SELECT * FROM t LATERAL VIEW OUTER posexplode(x) e AS p, y",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
    "SELECT trim(BOTH 'x' FROM a), substring(a FROM 1 FOR 2), overlay(a PLACING 'x' FROM 1), position('a' IN b) FROM t",
    "SELECT a FROM t WHERE a IS NOT DISTINCT FROM b AND NOT a RLIKE 'x' AND a BETWEEN 1 AND 2",
    "SELECT -1, +1, ~a, a & 1 | 2 ^ 3, a << 1, a >> 1, a <=> b, !a, a || b, a div 2 FROM t",
    "SELECT first(a) IGNORE NULLS, grouping_id() FROM t GROUP BY CUBE(a)",
    "SELECT interval '1' day, interval '1-2' year to month, interval 1 day 2 hours",
    "SELECT a FROM t JOIN LATERAL (SELECT * FROM u) x ON true LEFT ANTI JOIN w ON t.a = w.a",
    "SELECT case a when 1 then 2 else 3 end, nullif(a, '') from t",
    "SELECT if(a, 1, 2), left('abc', 1), count(DISTINCT a, b), timestamp '2020-01-01 00:00:00' FROM t",
    "SELECT listagg(a, ',') WITHIN GROUP (ORDER BY a), count(*) FILTER (WHERE a > 1) FROM t",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())",
    "SELECT transform(x, (e, i) -> e + i), date_add(d, 1), datediff(a, b) FROM t SORT BY a LIMIT 3 OFFSET 2",
]
HOSTILE = [
    "reflect('java.lang.System', 'getenv', 'HOME')", "java_method('a', 'b')", "`reflect`('a', 'b')", "${env:HOME}",
    "system.builtin.reflect('a', 'b')", "csv.`/etc/passwd`", "text.`/etc/hostname`", "TABLE csv.`/x`", "secret_table",
    "IDENTIFIER('secret' || '_table')", "TRANSFORM(a) USING 'cat'", "USING 'cat'", "input_file_name()", "my_udf(1)",
    "${system:line.separator}", "current_user()", "session_user", ":p", "?", "|> SELECT 1", "| WHERE a", "SET x = 1",
    "sql_keywords()", "FROM secret_table", "JOIN secret_table", ", secret_table", ", LATERAL secret_table",
    "UNION TABLE secret_table", "UNION SELECT * FROM secret_table", "IN (TABLE secret_table)", "STREAM secret_table",
    "WITH secret_table AS (SELECT 1)", "AS reflect(a)", "AS (SELECT, reflect(1))", "as from", "from", "FROM", "lateral",
    "VERSION AS OF 1", "TABLESAMPLE (1 ROWS)", "range(TABLE(secret_table))", "EXECUTE IMMEDIATE 'x'",
    "/*+ REPARTITION(1) */",
]  # fmt: skip
FRAGMENTS = [
    *HOSTILE, "'", '"', "`", "\\", "\\'", "''", '""', "--", "-- \\\n", "/*", "*/", "/* /* */", "/*+", "(", ")", ",",
    ".", "${", "}", "$", "\n", "\u00a0", "\u2028", "\u3000", "\u0130", "\uff07", "r'", "R\"", "x'", "N'", "U&'", "1.",
    ".5", "1e", "://", ":", "::", ";", "[", "]", "<", ">", ">>", "->", "=>", "=", "AS", "SELECT", "WHERE", "VALUES",
    "EXCEPT",
    "ON", "USING", "a", "t", "`a`", "0", "1L", "$$x$$", "\x00", "\x1b", "%", "|", "||",
]  # fmt: skip


@contextmanager
def settings(spark: "SparkSession", chosen: dict[str, str]) -> Iterator[None]:
    with ExitStack() as restored:
        for key, value in chosen.items():
            restored.callback(_restore, spark, key, spark.conf.get(key, None))
            spark.conf.set(key, value)
        yield


def _restore(spark: "SparkSession", key: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


@pytest.fixture
def parser(spark: "SparkSession") -> Any:
    if is_remote(spark):
        pytest.skip("Spark's parser is in the server, where this process cannot ask it")
    return spark._jsparkSession.sessionState().sqlParser()


def found_by_spark(parser: Any, text: str) -> tuple[set[str], set[str], set[str]]:
    """The relations, functions and kinds of nodes that Spark finds in a text; nothing if it cannot parse it."""
    relations, functions, kinds = set(), set(), set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            kind = str(value.get("class", "")).rpartition(".")[2]
            kinds.add(kind)
            if kind == "UnresolvedRelation":
                relations.add(value["multipartIdentifier"])
            if kind in ("UnresolvedFunction", "UnresolvedTableValuedFunction", "UnresolvedGenerator"):
                name = value["nameParts"] if kind == "UnresolvedFunction" else value["name"]
                functions.add((name["funcName"] if isinstance(name, dict) else name.strip("[]")).lower())
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                walk(each)

    try:
        plan = parser.parsePlan(text)
    except Exception as error:
        if "ParseException" not in str(type(error)) + str(error) and "SQLSTATE" not in str(error):
            raise
        return set(), set(), set()
    walk(json.loads(plan.toJSON()))
    return relations, functions, kinds


def faults_of(parser: Any, text: str, keywords: Iterable[str] = ()) -> list[str]:
    """What Spark finds in a text that a view must not have.

    keywords: those that a session must have no function of the name of.
    """
    relations, functions, kinds = found_by_spark(parser, text)
    checked = ALLOWED_FUNCTIONS.union(OPERATORS, keywords)
    return [
        *(f"relation {name}" for name in relations if not name.startswith("[icefield_s_")),
        *(f"function {name}" for name in functions if name not in checked),
        *(kind for kind in kinds if kind.endswith("Command") or "Script" in kind or "UnresolvedIdentifier" in kind),
    ]


def written(sql: str) -> str:
    query = parse_query(sql)
    names = {parts: f"icefield_s_{index}" for index, parts in enumerate(query.tables)}
    return f"SELECT * FROM (\n{query.write(names.__getitem__, 's')}\n)"


TEMPLATES = [
    "SELECT {0}, {1} AS a FROM t, {2}",
    "SELECT a {0} FROM t {1} WHERE {2}",
    "WITH c {0} AS (SELECT {1} FROM t) SELECT * FROM c {2}",
    "SELECT f({0}) FROM (SELECT 1 {1}) x JOIN {2}",
    "(SELECT {0} FROM {1}) UNION {2} SELECT 1",
    "SELECT * FROM {0} LATERAL VIEW explode(a) {1} {2}",
    "SELECT {0} FROM t {1} GROUP BY {2}",
    "SELECT upper({0}) {1} FROM {2} t",
]


def mutated(rng: random.Random) -> str:
    text = rng.choice(QUERIES)
    if rng.random() < 0.3:
        some = [rng.choice([*FRAGMENTS, *sorted(KEYWORDS), "t", "", "1", "a AS b"]) for _ in range(3)]
        return rng.choice(TEMPLATES).format(*some)
    for _ in range(rng.choice((1, 1, 2))):
        words = text.split(" ")
        at = rng.randrange(len(words) + 1)
        match rng.randrange(5):
            case 0:
                words.insert(at, rng.choice(FRAGMENTS))
            case 4:
                words.insert(at, rng.choice(sorted(KEYWORDS)))
            case 1:
                words[at : at + rng.randint(1, 3)] = [rng.choice(FRAGMENTS)]
            case 2:
                words[at:at] = rng.choice(QUERIES).split(" ")[: rng.randint(1, 8)]
            case _:
                place = rng.randrange(len(text) + 1)
                words = [text[:place] + rng.choice(FRAGMENTS) + text[place:]]
        text = " ".join(words)
    return text


def test_the_oracle_sees_what_a_view_must_not_have(parser: Any) -> None:
    for text in (
        "SELECT reflect('a', 'b')",
        "SELECT * FROM csv.`/x`",
        "SELECT TRANSFORM(a) USING 'cat' FROM icefield_s_0",
    ):
        assert faults_of(parser, text) != []
    for text in ("SELECT reflect('a', 'b')", "SELECT * FROM csv.`/x`", "SELECT * FROM secret"):
        with pytest.raises(Unsupported, match="which the check did not find"):
            check_plan_of(parser, text)


def check_plan_of(parser: Any, text: str) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only tests that ask for Spark load it

    check_plan(SparkSession.active(), text, "s")


def test_queries_of_people_are_read(parser: Any) -> None:
    for sql in QUERIES:
        assert found_by_spark(parser, written(sql))[2] != set(), sql
        assert faults_of(parser, written(sql)) == [], sql


@pytest.mark.parametrize(
    "chosen", SETTINGS, ids=lambda chosen: ",".join(key.rpartition(".")[2] for key in chosen) or "default"
)
def test_spark_finds_nothing_that_was_not_checked(chosen: dict[str, str], parser: Any, spark: "SparkSession") -> None:
    rng = random.Random(str(chosen))
    accepted = 0
    with settings(spark, chosen):
        for _ in range(MOST_TRIES):
            if accepted == ACCEPTED:
                break
            sql = mutated(rng)
            try:
                text, keywords = written(sql), parse_query(sql).keywords
            except IcefieldError:
                continue
            accepted += 1
            assert faults_of(parser, text, keywords) == [], (sql, text)
    assert accepted == ACCEPTED


# Where a keyword may stand for a name: of a relation, a function, a column, an alias.
PLACES = [
    "SELECT {}",
    "SELECT {} FROM t",
    "SELECT a {} FROM t",
    "SELECT a, {} FROM t",
    "SELECT 1 + {} FROM t",
    "SELECT upper({}) FROM t",
    "SELECT CASE {} WHEN 1 THEN {} ELSE {} END FROM t",
    "SELECT a FROM {}",
    "SELECT a FROM {} t",
    "SELECT a FROM t {}",
    "SELECT a FROM t, {}",
    "SELECT a FROM t JOIN {}",
    "SELECT a FROM t JOIN u ON {}",
    "SELECT a FROM t LATERAL VIEW {} x AS y",
    "SELECT a FROM t, LATERAL {}",
    "SELECT a FROM ({})",
    "SELECT a FROM VALUES {}",
    "SELECT a FROM VALUES {} AS v(a)",
    "SELECT a FROM (VALUES {})",
    "VALUES {}",
    "SELECT a FROM t WHERE {}",
    "SELECT a FROM t WHERE NOT {}",
    "SELECT a FROM t WHERE a IN ({})",
    "SELECT a FROM t WHERE a BETWEEN {} AND {}",
    "SELECT a FROM t WHERE a LIKE {}",
    "SELECT a FROM t GROUP BY {}",
    "SELECT a FROM t GROUP BY a, {}",
    "SELECT a FROM t HAVING {}",
    "SELECT a FROM t ORDER BY {}",
    "SELECT a FROM t LIMIT {}",
    "SELECT a FROM t UNION {}",
    "SELECT sum(a) OVER ({}) FROM t",
    "SELECT sum(a) FILTER ({}) FROM t",
    "SELECT * FROM t PIVOT ({})",
    "SELECT * FROM t TABLESAMPLE ({})",
    "SELECT /*+ BROADCAST({}) */ a FROM t",
    "SELECT /*+ {} */ a FROM t",
    "WITH {} AS (SELECT 1) SELECT * FROM c",
    "WITH c AS ({}) SELECT * FROM c",
]
FORMS = ["{}", "{} (1)", "{} (1, 2)", "{} (a)", "{} (a, b)", "{} ()", "{} a", "{} 'x'", "{} (SELECT 1)", "{}, u"]
PLACED = [(word, form, place) for word in sorted(KEYWORDS) for form in FORMS for place in PLACES]


def test_no_keyword_is_a_name_that_was_not_checked(parser: Any) -> None:
    faults = []
    for word, form, place in sample(PLACED, 400):
        some = form.format(word)
        sql = place.replace("{}", some)
        try:
            text, keywords = written(sql), parse_query(sql).keywords
        except IcefieldError:
            continue
        faults += [(sql, text, fault) for fault in faults_of(parser, text, keywords)]
    assert faults == []


@pytest.mark.parametrize("word", ["sets", "all", "union"])
def test_a_function_of_the_session_with_the_name_of_a_keyword_is_not_called(
    word: str, lake: Lake, spark: "SparkSession"
) -> None:
    spark.udf.register(word, lambda value: f"called with {value}")
    try:
        lake.create_view("a.v", f"SELECT 1 + {word} (1) AS a", schema="a string")
        with pytest.raises(Unsupported, match=f"has its own function|the function {word}"):
            lake.view("a.v").to_spark()
    finally:
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{word}`")


def test_every_function_of_spark_is_decided(spark: "SparkSession") -> None:
    known = {f.name for f in spark.catalog.listFunctions() if f.name.replace("_", "").isalnum() and f.isTemporary}
    assert known - PURE_FUNCTIONS - REFUSED_FUNCTIONS - OPERATORS == set()
    assert not PURE_FUNCTIONS & REFUSED_FUNCTIONS
    assert not KEYWORDS & REFUSED_FUNCTIONS


HOSTILE_VIEWS = [
    "SELECT 1 AS a -- ${system:line.separator}, reflect('java.lang.System', 'setProperty', 'icefield.hit', 'x')",
    "SELECT 1 AS a, '${system:line.separator}' AS b",
    "SELECT '${env:HOME}' AS a",
    'SELECT "${env:HOME}" AS a',
    r"SELECT r'${env:HOME}' AS a",
    "SELECT reflect('java.lang.System', 'setProperty', 'icefield.hit', 'x') AS a",
    "SELECT * FROM text.`/etc/hostname`",
    "SELECT * FROM secret",
    "WITH x AS (SELECT 1 AS a) SELECT * FROM x UNION SELECT * FROM secret",
    "SELECT current_user AS a",
    "SELECT own(1) AS a",
]


@pytest.mark.parametrize("sql", HOSTILE_VIEWS)
def test_a_view_of_others_sees_nothing_of_its_reader(sql: str, lake: Lake, spark: "SparkSession") -> None:
    spark.createDataFrame([("the secret",)], "a string").createOrReplaceTempView("secret")
    spark.udf.register("own", lambda value: "the secret")
    put_view(lake, "other.v", ViewDefinition(parse_schema("a string"), (SqlRepresentation(sql, "spark"),), ("other",)))
    try:
        rows = str(lake.view("other.v").to_spark().collect())
    except IcefieldError as error:
        rows = str(error)
    finally:
        spark.catalog.dropTempView("secret")
        spark.sql("DROP TEMPORARY FUNCTION own")
    assert "the secret" not in rows
    assert os.environ["HOME"] not in rows
    if not is_remote(spark):
        jvm: Any = spark._jvm
        assert jvm.java.lang.System.getProperty("icefield.hit") is None


@pytest.mark.parametrize("call", ["from_json('{}', '%s')", "from_csv('1', '%s')", "from_json('{}', concat('%s', ''))"])
def test_a_schema_in_json_names_no_class(
    call: str, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "icefield_named_by_a_view.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    kind = {"type": "udt", "pyClass": "icefield_named_by_a_view.Type", "serializedClass": "", "sqlType": "string"}
    schema = json.dumps({"type": "struct", "fields": [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]})
    sql = f"SELECT {call % schema} AS a"
    put_view(lake, "other.v", ViewDefinition(parse_schema("a string"), (SqlRepresentation(sql, "spark"),), ("other",)))
    with pytest.raises(Unsupported, match="one string of DDL"):
        lake.view("other.v").to_spark()
    assert "icefield_named_by_a_view" not in sys.modules


def test_every_expression_that_parses_a_type_is_known() -> None:
    import pyspark  # noqa: PLC0415 - only tests that ask for Spark load it

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-catalyst_*.jar")
    with zipfile.ZipFile(jar) as classes:
        names = [name for name in classes.namelist() if "/expressions/" in name]
        parsing = {
            PurePosixPath(n).stem for n in names if b"evalTypeExpr" in (c := classes.read(n)) or b"evalSchemaExpr" in c
        }
    # from_json, from_csv, variant_get and try_variant_get; from_xml, which is refused.
    assert parsing - {"ExprUtils", "ExprUtils$"} == {
        "JsonToStructs",
        "CsvToStructs",
        "VariantGetExpressionBuilderBase",
        "XmlToStructs",
    }
    assert set(SCHEMA_ARGUMENTS) <= PURE_FUNCTIONS


@pytest.mark.parametrize(
    ("key", "value", "sql", "fault"),
    [
        ("spark.sql.parser.escapedStringLiterals", "TRUE", r"SELECT 'a\tb' AS a", "backslashes"),
        ("spark.sql.parser.quotedRegexColumnNames", " True", "SELECT 'x' AS a", "patterns"),
        ("spark.sql.parser.escapedStringLiterals", "true", r"SELECT 'a\tb' AS a", "backslashes"),
        ("spark.sql.parser.quotedRegexColumnNames", "true", "SELECT 'x' AS a", "patterns"),
    ],
)
def test_a_session_that_reads_the_text_differently_is_refused(
    key: str, value: str, sql: str, fault: str, lake: Lake, spark: "SparkSession"
) -> None:
    lake.create_view("a.v", sql, schema="a string")
    assert len(lake.view("a.v").to_spark().collect()) == 1
    with settings(spark, {key: value}), pytest.raises(Unsupported, match=fault):
        lake.view("a.v").to_spark()


def test_strings_keep_their_value(lake: Lake) -> None:
    sql = r"""SELECT 'it''s' AS a, "x${y}'" AS b, r'a\nb' AS c, 'A\u00e4\n\\\%' AS d"""
    row = lake.create_view("a.v", sql).to_spark().collect()[0]
    assert tuple(row) == ("it's", "x${y}'", r"a\nb", "A\u00e4\n\\\\%")


def test_a_function_of_the_session_does_not_stand_in_for_sparks_own(lake: Lake, spark: "SparkSession") -> None:
    lake.create_view("a.v", "SELECT upper('a') AS a", schema="a string")
    spark.udf.register("upper", lambda value: "shadowed")
    try:
        assert lake.view("a.v").to_spark().collect()[0].a == "A"
        with (
            settings(spark, {"spark.sql.functionResolution.sessionOrder": "first"}),
            pytest.raises(Unsupported, match="upper"),
        ):
            lake.view("a.v").to_spark().collect()
    finally:
        spark.sql("DROP TEMPORARY FUNCTION upper")
