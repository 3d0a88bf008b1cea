"""What describes a lake: the call, the environment and a file. A wrong setting has a clear error, without secrets."""

from pathlib import Path
from typing import Any

import pytest

from icefield.config.configuration import LakeSettings
from icefield.config.file import ProcessEnvironment
from icefield.config.sources import find_settings
from icefield.errors import InvalidInput

FILE = """
default = "prod"

[lakes.prod]
target = "postgresql://me:hunter2@db.example/lake"
warehouse = "s3://bucket/lake"
catalog = "prod"
durable = false
roots = ["s3://archive/lake"]
properties.s3.region = "eu-1"
properties."s3.endpoint" = "https://s3.example"
properties.s3.path-style-access = true
properties.s3.secret-access-key = { env = "LAKE_SECRET" }

[lakes.here]
target = "data/lake"
roots = ["../archive"]

[lakes.server]
target = { env = "SERVER" }
warehouse = "main"
"""


class Place:
    """A working directory with its variables, and nobody's home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {"HOME": str(folder / "home"), "LAKE_SECRET": "hunter3"}

    def write(self, text: str | bytes, path: str = "icefield.toml") -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def find(self, target: str | None = None, default_target: str | None = None, **said: Any) -> LakeSettings:
        given = {**said, **({} if target is None else {"target": target})}
        return find_settings(given, ProcessEnvironment(self.variables, self.folder), default_target)

    def refusal(self, target: str | None = None, **said: Any) -> str:
        with pytest.raises(InvalidInput) as refused:
            self.find(target, **said)
        text = f"{refused.value} {refused.value.hint}"
        assert "hunter" not in text
        return text


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_directory_or_a_url_says_everything_itself(place: Place) -> None:
    place.write(FILE)
    place.variables |= {"ICEFIELD_LAKE": "prod", "ICEFIELD_WAREHOUSE": "elsewhere", "ICEFIELD_DURABLE": "0"}
    assert place.find("./lake") == LakeSettings("./lake")
    assert place.find("memory:") == LakeSettings("memory:")
    assert place.find("postgresql://db/x", warehouse="w") == LakeSettings("postgresql://db/x", "w")


def test_a_name_takes_what_the_file_says_and_the_call_says_more(place: Place) -> None:
    place.write(FILE)
    prod = place.find("prod", durable=True, properties={"s3.region": "us-1"})
    assert prod == LakeSettings(
        "postgresql://me:hunter2@db.example/lake",
        "s3://bucket/lake",
        "prod",
        ("s3://archive/lake",),
        True,
        {
            "s3.region": "us-1",
            "s3.endpoint": "https://s3.example",
            "s3.path-style-access": "true",
            "s3.secret-access-key": "hunter3",
        },
    )
    assert "hunter" not in repr(prod)


def test_paths_of_the_file_start_where_the_file_is(place: Place) -> None:
    file = place.write(FILE, "etc/lakes.toml")
    place.variables |= {"ICEFIELD_CONFIG": "etc/lakes.toml", "SERVER": "https://server/iceberg"}
    here = place.find("here")
    assert here.target == str(file.parent / "data/lake")
    assert [Path(root).resolve() for root in here.roots] == [place.folder / "archive"]
    assert place.find("server") == LakeSettings("https://server/iceberg", "main")
    for said, found in (("files:x", "files:{}/x"), ("sqlite:///c.db", "sqlite:///{}/c.db"), ("s3://b/x", "s3://b/x")):
        place.write(f"[lakes.a]\ntarget = '{said}'", "etc/lakes.toml")
        assert place.find("a").target == found.format(file.parent)


def test_without_a_target_the_environment_decides_and_then_the_file(place: Place) -> None:
    place.write(FILE)
    assert place.find().catalog == "prod"
    place.variables |= {"ICEFIELD_DURABLE": "true", "ICEFIELD_PROPERTIES": '{"s3.region": "us-1"}'}
    assert place.find().durable
    assert place.find().properties["s3.region"] == "us-1"
    place.variables |= {"ICEFIELD_LAKE": "here", "ICEFIELD_ROOTS": "/a:/b", "ICEFIELD_CATALOG": "mine"}
    assert place.find().roots == ("/a", "/b")
    assert place.find().catalog == "mine"
    assert place.find().target == str(place.folder / "data/lake")
    place.variables |= {"ICEFIELD_LAKE": "sqlite:///c.db", "ICEFIELD_WAREHOUSE": "w"}
    assert (place.find().target, place.find().warehouse) == ("sqlite:///c.db", "w")
    assert place.find(warehouse="v").warehouse == "v"


def test_the_first_file_that_is_there_is_read_alone(place: Place) -> None:
    assert place.find("word") == LakeSettings("word")  # no file, no names: a directory
    users = "home/.config/icefield/config.toml"
    place.write("[lakes.a]\ntarget = '/users'", users)
    assert place.find("a").target == "/users"
    place.variables["XDG_CONFIG_HOME"] = str(place.folder / "xdg")
    place.write("[lakes.a]\ntarget = '/xdg'", "xdg/icefield/config.toml")
    assert place.find("a").target == "/xdg"
    place.write("[lakes.a]\ntarget = '/here'")
    assert place.find("a").target == "/here"
    place.write("[lakes.a]\ntarget = '/named'", "named.toml")
    place.variables["ICEFIELD_CONFIG"] = "named.toml"
    assert place.find("a").target == "/named"


def test_a_word_that_names_no_lake_is_a_directory_only_where_there_is_one(place: Place) -> None:
    place.write(FILE)
    text = place.refusal("prd")
    assert "no lake is called 'prd'" in text
    assert "Did you mean 'prod'?" in text
    assert "./prd" in text
    assert "There are: here, prod, server" in place.refusal("zzz")
    (place.folder / "prd").mkdir()
    assert place.find("prd") == LakeSettings("prd")
    assert place.find("./other") == LakeSettings("./other")


def test_without_any_name_there_is_the_callers_default_or_an_error(place: Place) -> None:
    assert place.find(default_target="lake") == LakeSettings("lake")
    text = place.refusal()
    assert "no lake was named" in text
    assert "ICEFIELD_LAKE" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lakes.a]\ntargit = 'x'", "lakes.a: unknown setting 'targit'. Did you mean 'target'?"),
        ("[lakes.a]\nwarehouse = 'x'", "lakes.a has no target"),
        ("[lakes.a]\ntarget = 'x'\ndurable = 'hunter2'", "durable must be true or false, but is of type str"),
        ("[lakes.a]\ntarget = 5", "target must be a string, but is of type int"),
        ("[lakes.a]\ntarget = ''", "target must be a string, but is empty"),
        ("[lakes.a]\ntarget = 'x'\nroots = 'y'", "roots must be a list of strings, but is of type str"),
        ("[lakes.a]\ntarget = 'x'\nproperties = 'hunter2'", "properties must be a table of properties"),
        (
            "[lakes.a]\ntarget = 'x'\nproperties.s3.port = 1.5",
            "properties.s3.port must be a string, but is of type float",
        ),
        ("[lakes.a]\ntarget = { env = 'NOT_SET' }", "lakes.a.target: the variable NOT_SET is not set"),
        ("lakes.a = 'x'", "lakes.a must be a table"),
        ("lakes = 'x'", "lakes must be a table"),
        ("[lake.a]\ntarget = 'x'", "unknown setting 'lake'. Did you mean 'lakes'?"),
        ("[lakes.'a b']\ntarget = 'x'", "'a b' cannot name a lake"),
        ("default = 'b'\n[lakes.a]\ntarget = 'x'", "default = 'b' is not a lake in this file"),
        ("[lakes.a]\ntarget = hunter2", "is not valid TOML: Invalid value (at line 2, column 10)"),
        ("[lakes.a]\n[lakes.a]", "is not valid TOML: Cannot declare ('lakes', 'a') twice (at line 2"),
        (b"\xff", "is not UTF-8 text"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name_and_place(place: Place, text: str | bytes, message: str) -> None:
    file = place.write(text)
    refusal = place.refusal("a")
    assert str(file) in refusal
    assert message in refusal


def test_a_file_that_cannot_be_read_is_refused(place: Place) -> None:
    place.variables["ICEFIELD_CONFIG"] = "missing.toml"
    assert "missing.toml (named by ICEFIELD_CONFIG): No such file" in place.refusal("a")
    (place.folder / "icefield.toml").mkdir()
    place.variables["ICEFIELD_CONFIG"] = "icefield.toml"
    assert "Is a directory" in place.refusal("a")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ICEFIELD_DURABLE", "maybe", "ICEFIELD_DURABLE must be true or false"),
        ("ICEFIELD_PROPERTIES", "{hunter2", "ICEFIELD_PROPERTIES is not valid JSON (at character 1)"),
        ("ICEFIELD_PROPERTIES", '["hunter2"]', "properties must be a table of properties, but is of type list"),
        ("ICEFIELD_PROPERTIES", '{"token": null}', "properties.token must be a string, but is of type NoneType"),
        ("ICEFIELD_LAKE", "prd", "no lake is called 'prd'"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(place: Place, variable: str, value: str, message: str) -> None:
    place.write(FILE)
    place.variables[variable] = value
    assert message in place.refusal()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"durable": "hunter2"}, "connect(): durable must be true or false, but is of type str"),
        ({"properties": {"token": b"hunter2"}}, "connect(): properties.token must be a string, but is of type bytes"),
        ({"properties": {1: "hunter2"}}, "a name must be a string, but is of type int"),
        ({"catalog": 5}, "connect(): catalog must be a string, but is of type int"),
    ],
)
def test_a_wrong_argument_is_refused(place: Place, said: dict[str, Any], message: str) -> None:
    assert message in place.refusal("./lake", **said)
