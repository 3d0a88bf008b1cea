"""Directives that show what the code itself lists.

.. table-properties::           key, default and meaning of every property in `icefield.properties.table`
.. lake-settings::              key, variable and meaning of every argument of `icefield.connect`
.. listed-properties:: module   key and meaning of every property that a module's docstring lists
"""

from collections.abc import Iterable

from documented import lake_settings, listed_properties
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from icefield.properties.table import COLUMN_PROPERTIES, OPTIONAL_PROPERTIES, TABLE_PROPERTIES, WRITE_OPTIONS

NO_LIMIT = (1 << 63) - 1


class TableProperties(SphinxDirective):
    """A table of every property that Icefield reads."""

    def run(self) -> list[nodes.Node]:
        """Return the table, sorted by key."""
        known = [(each.key, each.default, each.doc) for each in (*TABLE_PROPERTIES, *OPTIONAL_PROPERTIES)]
        known += [(f"{each.prefix}NAME", each.default, each.doc) for each in COLUMN_PROPERTIES]
        rows = (
            (f"``{key}``", _default(default), "yes" if key in WRITE_OPTIONS else "", doc)
            for key, default, doc in sorted(known)
        )
        return self.parse_text_to_nodes(_list_table(("key", "default", "for one write", "meaning"), rows))


class LakeSettings(SphinxDirective):
    """A table of the settings of a lake."""

    def run(self) -> list[nodes.Node]:
        """Return the table, in the order of the arguments."""
        rows = ((f"``{key}``", f"``{name}``" if name else "", doc) for key, name, doc in lake_settings())
        return self.parse_text_to_nodes(_list_table(("key", "variable", "meaning"), rows, "18 26 56"))


class ListedProperties(SphinxDirective):
    """A table of the properties that a module lists."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, in the order of the list."""
        rows = ((f"``{key}``", doc) for key, doc in listed_properties(self.arguments[0]))
        return self.parse_text_to_nodes(_list_table(("key", "meaning"), rows, "36 64"))


def _default(value: object) -> str:
    if value is None or value == NO_LIMIT:
        return "none"
    return f"``{str(value).lower() if isinstance(value, bool) else value}``"


def _list_table(header: Iterable[str], rows: Iterable[Iterable[str]], widths: str = "36 14 10 40") -> str:
    lines = [".. list-table::", "   :header-rows: 1", "   :class: properties", f"   :widths: {widths}", ""]
    for row in (header, *rows):
        lines += [f"   {'*' if at == 0 else ' '} - {cell}" for at, cell in enumerate(row)]
    return "\n".join(lines)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directives."""
    app.add_directive("lake-settings", LakeSettings)
    app.add_directive("listed-properties", ListedProperties)
    app.add_directive("table-properties", TableProperties)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
