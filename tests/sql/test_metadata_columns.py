"""Metadata columns of rows are not among the columns that a star or a natural join takes."""

import pytest

from icefield.engine.choose import LOCAL
from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.sql.query.read import Opening
from icefield.sql.session import Run, SqlSession
from icefield.sql.syntax.place import Place
from tests.sql.running import refused, run


@pytest.fixture
def shop(memory_lake: Lake) -> Lake:
    memory_lake.create_namespace("shop")
    run(memory_lake, "CREATE TABLE shop.t (id INT, name STRING)")
    run(memory_lake, "INSERT INTO shop.t VALUES (1, 'a'), (2, 'b')")
    return memory_lake


def written(lake: Lake, text: str) -> str:
    """Return the text of a query with stars as they are for the engine, and its own names of tables."""
    opening = Opening(Run(SqlSession(lake), engine=LOCAL, text=text))
    names = opening.names(Place(text, 0, len(text)))
    new = opening.rewritten(names).text
    for each in names.references:
        new = new.replace(each.name, ".".join(each.parts))
    return new.replace(" AS `t`", "").replace(" AS `memory.shop.t`", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT *, _pos FROM shop.t", "SELECT * EXCEPT (_pos), _pos FROM shop.t"),
        ("SELECT * EXCEPT (id), _pos FROM shop.t", "SELECT * EXCEPT (_pos, id), _pos FROM shop.t"),
        ("SELECT struct(*) FROM shop.t WHERE _pos = 0", "SELECT struct(* EXCEPT (_pos)) FROM shop.t WHERE _pos = 0"),
        (
            "SELECT to_json(struct(t.*)), _pos FROM shop.t",
            "SELECT to_json(struct(t.* EXCEPT (_pos))), _pos FROM shop.t",
        ),
        ("SELECT f(1, *), _pos FROM shop.t", "SELECT f(1, * EXCEPT (_pos)), _pos FROM shop.t"),
        (
            "SELECT count(DISTINCT *) FROM shop.t WHERE _pos > 0",
            "SELECT count(DISTINCT * EXCEPT (_pos)) FROM shop.t WHERE _pos > 0",
        ),
        ("SELECT count(*), count( * ), (id) * 2, max(_pos) FROM shop.t", None),
        ("SELECT id * _pos, 2 * (id * (_pos)) FROM shop.t", None),
    ],
)
@pytest.mark.every_case
def test_a_star_has_the_columns_of_the_table(shop: Lake, text: str, expected: str | None) -> None:
    assert written(shop, text) == (expected or text)


def test_a_natural_join_is_by_columns_of_the_tables(shop: Lake) -> None:
    text = "SELECT count(*) FROM shop.t a NATURAL {}JOIN shop.t b WHERE a._pos >= 0"
    for side in ("", "LEFT ", "FULL OUTER "):
        refused(shop, text.format(side), Unsupported, at="shop.t", match="natural join")
    assert run(shop, "SELECT count(*) FROM shop.t a NATURAL JOIN shop.t b") == [(2,)]
    assert run(shop, "SELECT count(a._pos), count(b._pos) FROM shop.t a JOIN shop.t b USING (id, name)") == [(2, 2)]
