"""Find the kernels as machine code: the shared library that a build made of `kernel.c`.

The name of a library has the hash of its source and the system that it is for. So a library of another version of
`kernel.c`, or for another system, is not even opened, and a build never overwrites one that is in use.

Only the standard library is imported here: `scripts/compile_kernel.py` runs this file to name what it builds.
"""

import ctypes
import os
import platform
import sys
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent
VARIABLE = "ICEFIELD_KERNEL"
FUNCTIONS = ("decode_rows", "encode_rows", "encode_arrays")
_HASH_CHARACTERS = 16


def library_name(source: bytes, system: str) -> str:
    """Return the name of the library that is made of a source for a system."""
    return f"kernel-{sha256(source).hexdigest()[:_HASH_CHARACTERS]}-{system}.so"


def this_system() -> str:
    """Return the operating system and the processor that this process runs on."""
    return f"{sys.platform}-{platform.machine()}".lower()


def load_library(folder: Path = FOLDER) -> ctypes.CDLL:
    """Load the library of the `kernel.c` in a folder. Raises OSError if there is none that this process can load."""
    path = folder / library_name((folder / "kernel.c").read_bytes(), this_system())
    if not path.exists():
        raise FileNotFoundError(f"there is no {path.name} in {folder}")
    # Calls through CDLL do not hold the interpreter lock.
    library = ctypes.CDLL(str(path))
    missing = [name for name in FUNCTIONS if not hasattr(library, name)]
    if missing:
        raise OSError(f"{path} has no {missing[0]}")
    return library


def requested_kernel() -> str | None:
    """Return the kernel that the user asks for in the environment."""
    return os.environ.get(VARIABLE) or None
