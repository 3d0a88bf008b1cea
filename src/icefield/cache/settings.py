"""The settings of the manifest cache, as properties of a lake.

cache.memory-max-bytes   how much may be kept in memory (512 MiB); 0 keeps nothing
cache.dir                a directory to keep decoded manifests in, for other processes and the next start; else none
cache.max-bytes          how much may be kept in that directory (4 GiB)

Raises InvalidInput.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from icefield.cache.manifests import MEMORY_MAX_BYTES, ManifestCache
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput

with deferred_imports(__name__):
    from icefield.cache import disk

PREFIX = "cache."
MEMORY, DIRECTORY, DISK = "cache.memory-max-bytes", "cache.dir", "cache.max-bytes"


def open_manifest_cache(properties: Mapping[str, str], scope: str) -> ManifestCache:
    """Open the cache that properties describe; `scope` distinguishes lakes that share a directory."""
    unknown = sorted(set(properties) - {MEMORY, DIRECTORY, DISK})
    if unknown:
        raise InvalidInput(f"unknown cache property {unknown[0]!r}", hint=f"Known: {MEMORY}, {DIRECTORY}, {DISK}")
    disk_bytes = _bytes(properties, DISK, -1)
    sidecars = None
    if DIRECTORY in properties:
        folder = Path(properties[DIRECTORY]).expanduser().absolute()
        sidecars = disk.SidecarDirectory(folder, scope, disk.MAX_BYTES if disk_bytes < 0 else disk_bytes)
    return ManifestCache(_bytes(properties, MEMORY, MEMORY_MAX_BYTES), sidecars)


def _bytes(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{name} must be a number of bytes, but is {text!r}")
    return int(text)
