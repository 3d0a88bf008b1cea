"""Names are replaced in random queries, and Spark's parser reads the same plan before and after."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from icefield.spark.session.session import is_remote
from icefield.sql.syntax.place import Place
from icefield.sql.text.labels import Replaced, edits_of
from icefield.sql.text.mentions import find_mentions
from icefield.sql.text.rewrite import rewrite

pytestmark = pytest.mark.spark

# How a table is written, and its whole name.
TABLES = {
    "shop.orders": ("lake", "shop", "orders"),
    "`shop`.`orders`": ("lake", "shop", "orders"),
    "lake.shop.items": ("lake", "lake", "shop", "items"),
    "`shop`.items": ("lake", "shop", "items"),
    "shop . items": ("lake", "shop", "items"),
    "shop./* FROM a.b */items": ("lake", "shop", "items"),
    "other.orders": ("lake", "other", "orders"),
    "`a b`.`from`": ("lake", "a b", "from"),
    "shop.orders VERSION AS OF 3": ("lake", "shop", "orders"),
    "shop.items FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 1 DAY": ("lake", "shop", "items"),
    "orders": ("lake", "shop", "orders"),
}
LEFT = ("parquet.`/x`", "view_of_spark", "range(3)", "explode(array(1, 2))", "(VALUES (1), (2))")
ALIASES = ("", "", " o", " AS o", " AS `x y`", " AS `from`", " z (p, q)", " AS version", " timestamp")
VALUES = (
    *("id", "o.id", "shop.orders.id", "orders.x.y", "'FROM shop.orders'", '"it\'s, FROM b"', "1.5e3D", "`join`"),
    *("extract(year FROM id)", "count(*)", "id IS DISTINCT FROM 3", "CAST(id AS STRUCT<a: INT>)", "trim(BOTH FROM id)"),
    *(
        "x -> x.y + 1",
        "m['FROM']",
        "a[0].b",
        "INTERVAL 1 DAY",
        "r'\\'",
        "-id",
        "CASE WHEN id THEN 1 END",
        ":from",
        "from",
    ),
)
BLANKS = (" ", "\n", " /* a, FROM b */ ", " -- c FROM d\n", "\t")
JOINS = (",", " JOIN ", " LEFT ANTI JOIN ", " CROSS JOIN ", " NATURAL FULL OUTER JOIN ")


@st.composite
def queries(draw: st.DrawFn, depth: int = 2, common: tuple[str, ...] = ()) -> str:
    """Draw a query; `common`: names of common table expressions."""
    kind = draw(
        st.sampled_from(["select"] * 5 + ["with", "set", "pipe", "table", "from"] if depth else ["select", "table"])
    )
    below = queries(depth - 1, common) if depth else st.nothing()
    blank = draw(st.sampled_from(BLANKS))
    match kind:
        case "with":
            name = draw(st.sampled_from(("orders", "c", "shop")))
            inside = draw(queries(depth - 1, common))
            return f"WITH{blank}{name} AS ({inside}) {draw(queries(depth - 1, (*common, name)))}"
        case "set":
            operator = draw(st.sampled_from((" UNION ALL ", " EXCEPT ", " INTERSECT DISTINCT ", " MINUS ")))
            return f"({draw(below)}){operator}({draw(below)})"
        case "pipe":
            value = draw(st.sampled_from(("id", "orders.id")))
            relation = draw(relations(depth - 1, common))
            return f"FROM{blank}{relation} |> WHERE {value} > 1 |> SELECT {value}, 2 |> LIMIT 3"
        case "table":
            return f"TABLE {draw(st.sampled_from(('shop.orders', '`shop`.items', *common)))}"
        case "from":
            return f"FROM {draw(relations(depth - 1, common))} SELECT id, 2"
    listed = ", ".join(draw(st.lists(expressions(depth, common), min_size=1, max_size=3)))
    first, *others = draw(st.lists(relations(depth - 1, common), min_size=1, max_size=3))
    joined = first + "".join(draw(st.sampled_from(JOINS)) + other for other in others)
    where = f"{blank}WHERE {draw(expressions(depth, common))} = 1" if draw(st.booleans()) else ""
    order = draw(st.sampled_from(("", " ORDER BY 1, 2 LIMIT 3", " GROUP BY id HAVING id > 1", " DISTRIBUTE BY id")))
    return f"SELECT{blank}{listed}{blank}FROM{blank}{joined}{where}{order}"


@st.composite
def relations(draw: st.DrawFn, depth: int, common: tuple[str, ...]) -> str:
    """Draw a relation of a FROM clause."""
    alias = draw(st.sampled_from(ALIASES))
    if depth > 0 and draw(st.integers(0, 3)) == 0:
        return f"({draw(queries(depth - 1, common))}){alias}"
    if depth > 0 and draw(st.integers(0, 5)) == 0:
        return f"({draw(relations(0, common))} JOIN {draw(relations(0, common))})"
    sample = draw(st.sampled_from(("", "", " TABLESAMPLE (10 PERCENT)")))
    name = draw(st.sampled_from((*TABLES, *TABLES, *LEFT, *common)))
    return f"{name}{'' if name in LEFT else sample}{alias}"


@st.composite
def expressions(draw: st.DrawFn, depth: int, common: tuple[str, ...]) -> str:
    """Draw an expression, possibly with a subquery."""
    value = draw(st.sampled_from(VALUES))
    if depth and draw(st.integers(0, 3)) == 0:
        inside = draw(queries(depth - 1, common))
        return draw(
            st.sampled_from((f"({inside})", f"{value} IN ({inside})", f"EXISTS ({inside})", f"f(({inside}), 2)"))
        )
    return f"CAST(f({value}) AS {draw(st.sampled_from(('INT', 'STRING')))})" if draw(st.booleans()) else value


@given(st.data())
def test_replaced_names_leave_the_rest_of_the_plan_alone(spark: SparkSession, data: st.DataObject) -> None:
    if is_remote(spark):
        pytest.skip("Spark Connect does not show parsed plans")
    text = data.draw(queries())
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    try:
        before = json.loads(parser.parsePlan(text).toJSON())
    except Exception:
        return
    place = Place(text, 0, len(text))
    shape = find_mentions(place)
    replaced = [
        Replaced(mention, f"t{at}", TABLES[mention.place.text if mention.travel else mention.name_place.text])
        for at, mention in enumerate(shape.mentions)
        if mention.place.text in TABLES
    ]
    new = rewrite(place, list(edits_of(shape, replaced))).text
    after = json.loads(parser.parsePlan(new).toJSON())
    names = {f"[{each.name}]": _listed(each) for each in replaced}
    added = {f"[{each.name}]" for each in replaced if each.mention.alias is None and each.mention.after is not None}
    assert _normal(after, names, added) == _normal(before, {}, set()), new
    left = [name for name in _relations(after) if name not in names]
    assert not [name for name in left if name in names.values() and name != "[orders]"], new


def _listed(replaced: Replaced) -> str:
    return f"[{', '.join(replaced.mention.parts)}]"


def _relations(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [str(value["multipartIdentifier"])] if "multipartIdentifier" in value else []
        return own + [name for each in value.values() for name in _relations(each)]
    return [name for each in value for name in _relations(each)] if isinstance(value, list) else []


def _normal(value: Any, names: dict[str, str], added: set[str]) -> Any:
    """Return a plan with the names of tables as written, without added aliases, versions and unique ids."""
    if isinstance(value, list):
        found: list[Any] = []
        for at, each in enumerate(value):
            kind = str(each.get("class", "")).rpartition(".")[2] if isinstance(each, dict) else ""
            following = value[at + 1] if at + 1 < len(value) else None
            if kind == "SubqueryAlias" and isinstance(following, dict) and _is_added(following, value[at + 1 :], added):
                continue
            if kind == "RelationTimeTravel":
                found += _normal(each["relation"], names, added)
                continue
            found.append(_normal(each, names, added))
        return found
    if not isinstance(value, dict):
        return value
    # Children are known by the first child that is equal.
    kept = {key: each for key, each in value.items() if key not in ("exprId", "resultId", "left", "right", "children")}
    plain = {key: _normal(each, names, added) for key, each in kept.items()}
    if "multipartIdentifier" in plain:
        plain["multipartIdentifier"] = names.get(plain["multipartIdentifier"], plain["multipartIdentifier"])
    if "nameParts" in plain and isinstance(plain["nameParts"], str):
        plain["nameParts"] = plain["nameParts"].strip("[]").split(", ")[-1]
    return plain


def _is_added(following: dict[str, Any], rest: list[Any], added: set[str]) -> bool:
    """Return whether an alias is that of a table whose name was replaced, possibly around its sample."""
    if str(following.get("class", "")).endswith(".Sample") and len(rest) > 1:
        following = rest[1]
    return following.get("multipartIdentifier") in added
