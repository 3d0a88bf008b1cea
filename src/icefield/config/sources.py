"""Where the settings of a lake come from: the call, else the environment, else a file.

A call that names a directory or a URL says everything itself; nothing else is read. A call that names a lake of the
file takes what the file says of it. A call that names nothing takes the lake that ICEFIELD_LAKE names, with the other
variables of the environment, or else the file's `default`. What is said nearer to the call wins.

Raises InvalidInput.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from icefield.config.configuration import PROPERTIES, LakeSettings, merge_settings, parse_settings, suggest
from icefield.config.file import CONFIG_FILE, LAKE_NAME, ProcessEnvironment, find_file
from icefield.errors import InvalidInput

LAKE_VARIABLE = "ICEFIELD_LAKE"
WAREHOUSE_VARIABLE = "ICEFIELD_WAREHOUSE"
CATALOG_VARIABLE = "ICEFIELD_CATALOG"
DURABLE_VARIABLE = "ICEFIELD_DURABLE"
ROOTS_VARIABLE = "ICEFIELD_ROOTS"
PROPERTIES_VARIABLE = "ICEFIELD_PROPERTIES"

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def find_settings(
    said: Mapping[str, object], process: ProcessEnvironment, default_target: str | None = None
) -> LakeSettings:
    """Return the settings of the lake that a call names, or of the default one."""
    given = parse_settings(said, "connect()")
    if "target" in given:
        return merge_settings(_with_file(given, process))
    variables = _environment_settings(process.environment)
    if "target" in variables:
        return merge_settings([*_with_file(variables, process), given])
    file = find_file(process)
    if file is not None and file.default is not None:
        return merge_settings([file.lake(file.default), variables, given])
    if default_target is not None:
        return merge_settings([variables, given, {"target": default_target}])
    raise InvalidInput(
        "no lake was named",
        hint=f"Give connect() a directory or a URL, set {LAKE_VARIABLE}, or write a default into {CONFIG_FILE}",
    )


def read_roots(text: str) -> tuple[str, ...]:
    """Take a list of directories apart, as in PATH."""
    return tuple(root for root in text.split(os.pathsep) if root)


def _with_file(parsed: dict[str, Any], process: ProcessEnvironment) -> list[dict[str, Any]]:
    """Put what the file says of a lake before what is said already, where the target is its name."""
    target = parsed["target"]
    file = find_file(process) if LAKE_NAME.fullmatch(target) else None
    if file is None or not file.lakes:
        return [parsed]
    if target in file.lakes:
        return [file.lake(target), {key: value for key, value in parsed.items() if key != "target"}]
    if (process.folder / target).is_dir():
        return [parsed]
    raise InvalidInput(
        f"no lake is called {target!r} in {file.path}",
        hint=f"For a directory of that name write ./{target}. {suggest(target, file.lakes)}",
    )


def _environment_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for variable, key in _VARIABLES.items():
        if text := environment.get(variable):
            said = _READ[key](text, variable) if key in _READ else text
            parsed.update(parse_settings({key: said}, variable))
    return parsed


def _read_truth(text: str, variable: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise InvalidInput(f"{variable} must be true or false")
    return _TRUTHS[text.lower()]


def _read_properties(text: str, variable: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        # The message of the error is left out with its cause: the text may hold a secret.
        raise InvalidInput(
            f"{variable} is not valid JSON (at character {getattr(error, 'pos', 0)})",
            hint=f"""Write it as {variable}='{{"s3.endpoint": "https://..."}}'""",
        ) from None


_VARIABLES = {
    LAKE_VARIABLE: "target",
    WAREHOUSE_VARIABLE: "warehouse",
    CATALOG_VARIABLE: "catalog",
    DURABLE_VARIABLE: "durable",
    ROOTS_VARIABLE: "roots",
    PROPERTIES_VARIABLE: PROPERTIES,
}
_READ = {"durable": _read_truth, "roots": lambda text, _: read_roots(text), PROPERTIES: _read_properties}
