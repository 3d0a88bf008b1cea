"""How Sphinx builds the docs site; `make site` runs it (decision 37).

The source directory is the root of the project, so that the Markdown pages link to each other as they do in the
repository. The API and the command line are imported from .venv: Sphinx has an environment of its own, and both locks
agree on the versions of what they share.
"""

import site
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
site.addsitedir(str(ROOT / ".venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"))
sys.path.insert(0, str(Path(__file__).parent))

project = "Icefield"
author = "The Icefield contributors"
project_copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "reference_tables"]
root_doc = "docs/README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/decisions/*.md",
    "docs/site/**",
    "examples/README.md",
    "tests/**/README.md",
    "tests/README.md",
]
exclude_patterns = [".*", "build", "src", "benchmarks", "scripts", "requirements"]

# Headings get the anchors that GitHub gives them, so a link works in both places.
myst_heading_anchors = 4

# Docstrings write names between single backticks: a name of the API becomes a link, anything else is shown as code.
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_ivar = True
toc_object_entries = False

html_theme = "furo"
html_title = "Icefield"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"
smartquotes = False  # they would turn --option into a dash; `set_dashes` does what is left to do

# Classes that users make themselves.
CONSTRUCTED = {"StreamBatch"}
# Pages of the repository that get a table of contents, which is of use on the site alone.
CONTENTS = {root_doc: "contents.txt", "docs/decisions/README": "decisions.txt"}


def setup(app: Sphinx) -> None:
    """Connect what is done to pages and signatures."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("doctree-read", set_dashes)


def add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the table of contents of a page to its text."""
    if page in CONTENTS:
        source[0] += "\n" + (Path(__file__).parent / CONTENTS[page]).read_text()


def hide_constructor(_app: Sphinx, what: str, name: str, *rest: object) -> tuple[str, str] | None:
    """Leave out how an object is made that users only get: its docstring says which verb returns it."""
    *_, signature, _ = rest
    hidden = signature and what in ("class", "exception") and name.rpartition(".")[2] not in CONSTRUCTED
    return ("", "") if hidden else None


def set_dashes(_: Sphinx, document: nodes.document) -> None:
    """Write the dash between a parameter and its description, which Sphinx leaves to smart quotes."""
    for text in list(document.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))
