"""Secrets: planted in every setting that may hold one, and looked for in all that is shown when things fail."""

import base64
import json
import logging
import pickle
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import icefield
from icefield.catalog.rest.settings import RestSettings
from icefield.catalog.sql.postgres_connection import parse_target
from icefield.cli.main import run
from icefield.config.configuration import LakeSettings, parse_settings
from icefield.errors import CatalogError, IcefieldError, InvalidInput
from icefield.secrets import RedactedError, Secret, protect, redact, redact_error, reveal
from icefield.storage.object_store.store import ObjectStore

pytestmark = pytest.mark.every_case

PLANTED = "pl4nted/S3cret+value=="
CLOSED = "127.0.0.1:1"  # a port that nobody listens on


def shown(error: BaseException) -> str:
    """Everything that an error shows, with what led to it."""
    strings, pending, seen = ["".join(traceback.format_exception(error))], [error], set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        strings += [str(each), repr(each), repr(each.args), repr(vars(each))]
        pending += [inner for inner in (each.__cause__, each.__context__) if inner is not None]
    return "\n".join(strings)


def assert_hidden(text: str, secret: str = PLANTED) -> None:
    for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), repr(secret)[1:-1]):
        assert form not in text


@dataclass
class Echo:
    """A server that repeats what it was sent, in a way that the test chooses."""

    url: str = ""
    status: int = 401
    shape: str = "json"


@contextmanager
def echo_server() -> Iterator[Echo]:
    echo = Echo()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            heard = f"{self.path}\n{self.headers}\n{self.rfile.read(length).decode()}"
            if echo.shape == "status line":
                self.wfile.write(f"NOTHTTP {heard}\r\n\r\n".encode())
                self.close_connection = True
                return
            bodies = {
                "json": json.dumps({"error": {"message": heard, "type": "X", "code": echo.status}}),
                "oauth": json.dumps({"error": "invalid_client", "error_description": heard}),
                "xml": f"<Error><Code>InvalidToken</Code><Message>{heard}</Message><Token-0>{heard}</Token-0></Error>",
                "text": heard,
            }
            body = bodies[echo.shape].encode()
            self.send_response(echo.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the names that the server calls

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    echo.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield echo
    finally:
        server.shutdown()
        server.server_close()


REST_SECRETS = [
    {"token": PLANTED},
    {"credential": f"me:{PLANTED}"},
    {"credential": PLANTED},
    {"header.Authorization": f"Basic {PLANTED}"},
    {"header.X-Api-Key": PLANTED},
    {"token": "other-token", "s3.secret-access-key": PLANTED},
    {"token": "other-token", "s3.session-token": PLANTED},
]


@pytest.mark.parametrize("properties", REST_SECRETS, ids="+".join)
@pytest.mark.parametrize(
    ("shape", "status"), [("json", 401), ("json", 500), ("oauth", 400), ("text", 200), ("status line", 0)]
)
def test_a_rest_server_that_repeats_secrets_does_not_get_them_shown(
    properties: dict[str, str],
    shape: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("icefield.catalog.rest.session.FIRST_PAUSE_SECONDS", 0.0)
    with echo_server() as echo:
        echo.shape, echo.status = shape, status
        with pytest.raises(IcefieldError) as raised:
            icefield.connect(echo.url, properties=properties)
    assert_hidden(shown(raised.value))
    assert_hidden(caplog.text)


@pytest.mark.parametrize("properties", REST_SECRETS, ids="+".join)
@pytest.mark.parametrize("url", [f"http://{CLOSED}", "https://127.0.0.1:{plain}", "http://no.such.host.invalid"])
def test_a_rest_server_that_cannot_be_reached(
    properties: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield.catalog.rest.session.FIRST_PAUSE_SECONDS", 0.0)
    with echo_server() as echo:
        url = url.replace("{plain}", echo.url.rpartition(":")[2])
        with pytest.raises(CatalogError) as raised:
            icefield.connect(url, properties={**properties, "rest-timeout-seconds": "2"})
    assert_hidden(shown(raised.value))


@pytest.mark.parametrize("end", ["\n", "\r\nX-Other: 1", "\x00", " ", "é", "\u2028"])
@pytest.mark.parametrize("key", ["token", "credential", "header.Authorization"])
def test_a_value_that_no_header_can_carry_is_refused_without_being_shown(key: str, end: str) -> None:
    value = f"{PLANTED}{end}"
    if key == "credential" and end in ("\x00", "é", "\r\nX-Other: 1"):
        pytest.skip("a credential goes into a form, which carries any character")
    with pytest.raises(InvalidInput) as raised:
        icefield.connect(f"http://{CLOSED}", properties={key: value})
    assert_hidden(shown(raised.value))


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{PLANTED}@{CLOSED}",
        f"http://me:{quote(PLANTED, safe='')}@{CLOSED}/v1",
        f"http://{CLOSED}/?token={quote(PLANTED, safe='')}",
        f"http://host:{PLANTED}/",
        f"http://[{PLANTED}",
        f"ftp://me:{PLANTED}@host/x",
        f"mysql://me:{PLANTED}@host/x",
        f"postgresql://me:{PLANTED}@{CLOSED}/db",
        f"postgresql://me:{quote(PLANTED, safe='')}@{CLOSED}/db",
        f"postgresql://{CLOSED}/db?user=me&password={quote(PLANTED, safe='')}",
        f"postgresql://me:a@{PLANTED}@{CLOSED}/db",
        f"postgresql://me:{PLANTED}/x",
        f"postgresql://me:x@{CLOSED}/db?password={PLANTED}&nonsense=1",
        f"postgresql://me:%zz{PLANTED}@{CLOSED}/db",
        f"host={CLOSED} user=me password={PLANTED} dbname=db",
        f"postgresql:/me:{PLANTED}@{CLOSED}/db",
    ],
)
def test_passwords_in_targets_are_not_shown(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def use() -> object:
        with icefield.connect(url, warehouse=str(tmp_path / "w")) as lake:
            return lake.tables()

    with pytest.raises(IcefieldError) as raised:
        use()
    assert_hidden(shown(raised.value))
    assert run(["--lake", url, "--warehouse", str(tmp_path / "w"), "--debug", "tables"]) == 1
    assert run(["--lake", url, "--warehouse", str(tmp_path / "w"), "--json", "tables"]) == 1
    printed = capsys.readouterr()
    assert_hidden(printed.out + printed.err)
    assert [path.name for path in Path.cwd().iterdir() if PLANTED.partition("/")[0] in path.name] == []


def test_a_password_of_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGPASSWORD", PLANTED)
    with (
        icefield.connect(f"postgresql://me@{CLOSED}/db", warehouse=str(tmp_path)) as lake,
        pytest.raises(CatalogError) as raised,
    ):
        lake.tables()
    assert_hidden(shown(raised.value))


STORE_SECRETS = ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"]


@pytest.mark.parametrize("key", STORE_SECRETS)
@pytest.mark.parametrize("source", ["properties", "environment"])
def test_an_object_store_that_repeats_secrets(key: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"s3.access-key-id": "AKIAKEYFOROTHERS", "s3.secret-access-key": "someothersecretvalue", "s3.region": "x"}
    if source == "environment":
        monkeypatch.setenv(f"AWS_{key.removeprefix('s3.').upper().replace('-', '_')}", PLANTED)
        given.pop(key, None)
    else:
        given[key] = PLANTED
    with echo_server() as echo:
        echo.shape, echo.status = "xml", 400
        store = ObjectStore({**given, "s3.endpoint": echo.url})
        assert_hidden(repr(store) + repr(vars(store)) + repr(vars(store._clients)))
        acts: list[Callable[[], object]] = [
            lambda: store.read("s3://b/k"),
            lambda: store.size("s3://b/k"),
            lambda: store.put_new("s3://b/k", b"x"),
            lambda: list(store.list("s3://b/k")),
            lambda: store.delete("s3://b/k"),
            lambda: store.open_input("s3://b/k"),
            lambda: store.read_versioned("s3://b/k"),
            lambda: store.put_if_match("s3://b/k", b"x", None),
        ]
        for act in acts:
            with pytest.raises(IcefieldError) as raised:
                act()
            assert_hidden(shown(raised.value))


@pytest.mark.parametrize(
    ("location", "properties"),
    [
        ("s3://b/k", {"s3.endpoint": f"http://me:{PLANTED}@{CLOSED}"}),
        ("s3://b/k", {"s3.endpoint": f"http://{CLOSED}/?sig={PLANTED}"}),
        ("s3://b/k", {"s3.endpoint": PLANTED}),
        ("s3://b/k", {"s3.endpoint": f"http://host:{PLANTED}"}),
        ("s3://b/k", {"s3.nonsense": PLANTED}),
        ("s3://b/k", {"s3.path-style-access": PLANTED}),
        ("s3://b/k", {"s3.conditional-put": PLANTED}),
        ("gs://b/k", {"gs.service-account-key": PLANTED}),
        ("gs://b/k", {"gs.service-account-key": json.dumps({"private_key": PLANTED})}),
        ("az://b/k", {"az.account-name": "a", "az.access-key": f"not base64 {PLANTED}"}),
    ],
    ids=str,
)
def test_settings_that_a_client_refuses_are_not_quoted(location: str, properties: dict[str, str]) -> None:
    with pytest.raises(IcefieldError) as raised:
        icefield.connect(location, properties=properties)
    assert_hidden(shown(raised.value))


def test_configuration_shows_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        f'[lakes.a]\ntarget = "http://{CLOSED}"\nproperties.token = "{PLANTED}\\n"\n',
        f'[lakes.a]\ntarget = "http://{CLOSED}"\nproperties.token = "{PLANTED}\n',
        f'[lakes.a]\ntarget = "http://{CLOSED}"\nproperties.tokenn = "{PLANTED}"\n',
        f'[lakes.a]\ntarget = "http://me:{PLANTED}@{CLOSED}"\n',
        f'[lakes.a]\ntarget = "http://{CLOSED}"\ndurable = "{PLANTED}"\n',
    ):
        Path("icefield.toml").write_text(text)
        with pytest.raises(IcefieldError) as raised:
            icefield.connect("a")
        assert_hidden(shown(raised.value))
        assert run(["--lake", "a", "--debug", "tables"]) == 1
    Path("icefield.toml").unlink()
    monkeypatch.setenv("ICEFIELD_LAKE", f"http://{CLOSED}")
    for value in (f'{{"token": "{PLANTED}", }}', f'{{"token": ["{PLANTED}"]}}', json.dumps({"token": f"{PLANTED}\n"})):
        monkeypatch.setenv("ICEFIELD_PROPERTIES", value)
        assert run(["--debug", "tables"]) == 1
    assert run(["--lake-property", PLANTED, "--debug", "tables"]) == 1
    printed = capsys.readouterr()
    assert_hidden(printed.out + printed.err)


def test_reprs_and_pickles_of_settings() -> None:
    properties = {
        "token": PLANTED,
        "s3.secret-access-key": PLANTED,
        "header.Authorization": PLANTED,
        "s3.region": "here",
    }
    parsed = parse_settings({"target": "x", "properties": properties}, "connect()")
    target = parse_target(f"postgresql://me:{quote(PLANTED, safe='')}@host/db?sslpassword={quote(PLANTED, safe='')}")
    for each in (parsed, LakeSettings(**parsed), RestSettings(None, properties), target, protect(properties)):
        assert_hidden(f"{each!r} {each}")
    assert (target.parameters["password"], target.label) == (PLANTED, "postgresql://me@host/db")
    kept = protect(properties)
    assert f"{kept['s3.region']} {kept['token']}" == "here ***"
    copied = pickle.loads(pickle.dumps(kept))
    assert (copied, type(copied["token"])) == (properties, Secret)
    assert reveal(protect(copied)["token"]) == PLANTED


def test_redaction_knows_how_a_secret_may_be_written() -> None:
    secret = "pass word/1+'\"\n"
    for form in (secret, quote(secret), repr(secret), json.dumps(secret), base64.b64encode(secret.encode()).decode()):
        assert "word" not in redact(f"[{form}]", [secret])
    assert redact("postgresql://postgres@host", ["postgres"]) == "postgresql://***@host"
    assert redact("a b", ["a", ""]) == "a b"


def test_errors_of_others_are_replaced_where_they_show_a_secret() -> None:
    def fail() -> None:
        try:
            raise ValueError(f"cannot use {PLANTED}")
        except ValueError as error:
            raise CatalogError(f"the server says {PLANTED}", hint=f"not {PLANTED}") from error

    with pytest.raises(CatalogError) as raised:
        fail()
    redact_error(raised.value, [PLANTED])
    assert_hidden(shown(raised.value))
    assert isinstance(raised.value.__cause__, RedactedError)
    assert str(raised.value.__cause__) == "ValueError: cannot use ***"


def test_the_closed_port_is_closed() -> None:
    host, _, port = CLOSED.partition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0
