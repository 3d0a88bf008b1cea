"""The file that describes lakes by name.

It is $ICEFIELD_CONFIG, else `icefield.toml` in the working directory, else `icefield/config.toml` in $XDG_CONFIG_HOME
or ~/.config: the first that is there, alone. Its relative paths start at its own directory, and `{ env = "NAME" }` in
place of a text takes the text from the environment, so that secrets need not be in the file.

    default = "prod"
    [lakes.prod]
    target = "postgresql://lake@db.example/lake"
    warehouse = "s3://bucket/lake"
    properties.s3.secret-access-key = { env = "LAKE_SECRET" }

Raises InvalidInput, which names the file and the setting.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefield.config.configuration import parse_settings, suggest
from icefield.errors import InvalidInput

CONFIG_VARIABLE = "ICEFIELD_CONFIG"
CONFIG_FILE = "icefield.toml"
USERS_FILE = "icefield/config.toml"
REST_SCHEMES = ("http://", "https://")
LAKE_NAME = re.compile(r"[A-Za-z0-9_-]+")

_TOP = ("default", "lakes")
# The prefixes of a path in a target; a target with any other scheme is not a path.
_PATH_PREFIXES = ("files:", "sqlite:///")


@dataclass(frozen=True)
class ProcessEnvironment:
    """What a call can see: the variables of the process, and its working directory."""

    environment: Mapping[str, str]
    folder: Path


@dataclass(frozen=True)
class ConfigurationFile:
    """A file that was read; each lake is checked when it is asked for."""

    path: Path
    default: str | None
    lakes: Mapping[str, object]
    environment: Mapping[str, str]

    def lake(self, name: str) -> dict[str, Any]:
        """Read what the file says of a lake."""
        source = f"{self.path}: lakes.{name}"
        said = self.lakes[name]
        if not isinstance(said, dict):
            raise InvalidInput(f"{source} must be a table", hint=f"Write [lakes.{name}] and its settings below it")
        parsed = parse_settings(_with_variables(said, source, self.environment), source)
        if "target" not in parsed:
            raise InvalidInput(f"{source} has no target", hint="Add target = a directory or a URL")
        folder = self.path.parent
        # At a REST server the warehouse is a name, or a location of the server's.
        if "warehouse" in parsed and not parsed["target"].startswith(REST_SCHEMES):
            parsed["warehouse"] = _resolve(parsed["warehouse"], folder)
        if "roots" in parsed:
            parsed["roots"] = tuple(_resolve(root, folder) for root in parsed["roots"])
        return {**parsed, "target": _resolve(parsed["target"], folder)}


def find_file(process: ProcessEnvironment) -> ConfigurationFile | None:
    """Read the file that describes lakes, if there is one."""
    environment = process.environment
    if named := environment.get(CONFIG_VARIABLE):
        return _read_file(process.folder / named, environment, f" (named by {CONFIG_VARIABLE})")
    users = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME") or "~", ".config")  # noqa: PTH118
    for path in (process.folder / CONFIG_FILE, Path(users).expanduser() / USERS_FILE):
        if path.is_file():
            return _read_file(path, environment)
    return None


def _read_file(path: Path, environment: Mapping[str, str], why: str = "") -> ConfigurationFile:
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}{why}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from error
    for key in said:
        if key not in _TOP:
            raise InvalidInput(f"{path}: unknown setting {key!r}", hint=suggest(key, _TOP))
    lakes, default = said.get("lakes", {}), said.get("default")
    if not isinstance(lakes, dict):
        raise InvalidInput(f"{path}: lakes must be a table", hint="Write [lakes.<name>] for each lake")
    if wrong := [name for name in lakes if not LAKE_NAME.fullmatch(name)]:
        raise InvalidInput(f"{path}: {wrong[0]!r} cannot name a lake", hint="Use letters, digits, - and _")
    if default is not None and default not in lakes:
        raise InvalidInput(
            f"{path}: default = {default!r} is not a lake in this file", hint=suggest(str(default), lakes)
        )
    return ConfigurationFile(path, default, lakes, environment)


def _with_variables(said: Mapping[str, Any], where: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Put in the values of `{ env = "NAME" }`, at any depth."""
    found: dict[str, Any] = {}
    for key, value in said.items():
        found[key] = value
        if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
            if value["env"] not in environment:
                raise InvalidInput(f"{where}.{key}: the variable {value['env']} is not set")
            found[key] = environment[value["env"]]
        elif isinstance(value, dict):
            found[key] = _with_variables(value, f"{where}.{key}", environment)
    return found


def _resolve(place: str, folder: Path) -> str:
    prefix = next((known for known in _PATH_PREFIXES if place.startswith(known)), "")
    if not prefix and ("://" in place or place.startswith(("memory:", "file:"))):
        return place
    return f"{prefix}{folder.absolute() / Path(place.removeprefix(prefix)).expanduser()}"
