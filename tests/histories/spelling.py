"""What JSON of Iceberg says, whatever the spelling of default values."""

from typing import Any

import numpy as np

DEFAULTS = ("initial-default", "write-default")


def spelt_alike(value: Any) -> Any:
    """Spell default values in one way.

    Java writes bytes in capital letters, where the specification has small ones, and floats in fewer digits.
    """
    if isinstance(value, dict):
        return {key: _default(each) if key in DEFAULTS else spelt_alike(each) for key, each in value.items()}
    return [spelt_alike(each) for each in value] if isinstance(value, list) else value


def _default(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if isinstance(value, float) else value
