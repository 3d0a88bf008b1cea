"""Run a script as if only the core were installed: what `pip install icefield` brings, without any extra.

    python -m tests.core_only SCRIPT [ARGUMENT ...]

Other packages of this environment cannot be imported; what the core needs is read from the metadata of the packages.
"""

import runpy
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class CoreOnly(MetaPathFinder):
    """Refuses modules of packages that are not in the core."""

    def __init__(self, refused: set[str]) -> None:
        self._refused = refused

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise ModuleNotFoundError as if a package were not installed; leave the rest to the next finder."""
        if name.partition(".")[0] not in self._refused:
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def core_packages() -> set[str]:
    """Return the names of the packages that an install without extras brings."""
    found: set[str] = set()
    wanted = ["icefield"]
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in found:
            found.add(name)
            for text in metadata.requires(name) or []:
                requirement = Requirement(text)
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                    wanted.append(requirement.name)
    return found


def allow_only_core() -> None:
    """Refuse every import from a package outside the core, from now on."""
    core = core_packages()
    others = {
        module
        for module, packages in metadata.packages_distributions().items()
        if not core & {canonicalize_name(package) for package in packages}
    }
    for name in [name for name in sys.modules if name.partition(".")[0] == "packaging"]:
        del sys.modules[name]
    sys.meta_path.insert(0, CoreOnly(others))


if __name__ == "__main__":
    allow_only_core()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
