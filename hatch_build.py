"""Put the compiled Avro kernels into the wheel; without a compiler it is a wheel of Python only.

An editable install has the library beside its source, where `scripts/environment.py` builds it too.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig
from packaging.tags import platform_tags

PACKAGE = Path("src") / "icefield" / "codec" / "avro"
# The platforms that a wheel is for, where that is not this one (scripts/build_wheels.py).
PLATFORM_VARIABLE = "ICEFIELD_BUILD_PLATFORM"


class KernelHook(BuildHookInterface[WheelBuilderConfig]):
    """Compile before the files of the wheel are gathered."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            self._compile(Path(self.root) / PACKAGE)
            return
        # Not in the source tree, which may be read-only.
        self._scratch = tempfile.TemporaryDirectory(prefix="icefield-kernel-")
        library = self._compile(Path(self._scratch.name))
        if library is not None:
            build_data["force_include"][str(library)] = str(Path(*PACKAGE.parts[1:]) / library.name)
            build_data["pure_python"] = False
            # No Python is called from C, so that one wheel serves every Python of a platform.
            build_data["tag"] = f"py3-none-{os.environ.get(PLATFORM_VARIABLE) or _this_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._scratch.cleanup()

    def _compile(self, into: Path) -> Path | None:
        script = Path(self.root) / "scripts" / "compile_kernel.py"
        done = subprocess.run(
            [sys.executable, str(script), "--into", str(into)], stdout=subprocess.PIPE, text=True, check=False
        )
        return None if done.returncode else Path(done.stdout.strip())


def _this_platform() -> str:
    """Return the platform of this machine; a library that was built here may not run on older ones."""
    return next(tag for tag in platform_tags() if "manylinux" not in tag and "musllinux" not in tag)
