"""Secrets: values that no repr, message, cause or log may show.

`Secret` is text that shows as `***` unless it is asked for by `reveal`. `protect` makes secrets of the settings that
may be one, by their names: of clients and headers all but those that are known not to be. `without_secrets` takes them
out of what was raised while it was entered, whoever wrote the message: servers repeat tokens, and drivers quote what
they cannot parse.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote, quote_plus, unquote

from icefield.errors import IcefieldError

MASK = "***"
# Shorter ones cannot be distinguished from ordinary words; up to the second number they match only as whole words.
MIN_CHARACTERS, SURE_CHARACTERS = 4, 12
# Settings that are not secret, though their names look like it.
PUBLIC_SETTINGS = frozenset(
    {
        "az.account-name",
        "az.endpoint",
        "gs.endpoint",
        "gs.project-id",
        "s3.endpoint",
        "s3.path-style-access",
        "s3.region",
    }
)
_SECRET_SETTINGS = re.compile(
    r"(s3|gs|gcs|az|adls|header)\..*|.*(token|credential|secret|password|key|sas).*", re.IGNORECASE
)
_TRUTHS = ("true", "false")
_SECRET_VARIABLES = re.compile(
    r"(AWS|AZURE|GOOGLE|GCP|PG|ICEFIELD)_?\w*(KEY|TOKEN|SECRET|PASS|CREDENTIAL|SAS|ACCOUNT)\w*", re.IGNORECASE
)
_SECRET_IN_URL = re.compile(r"://[^@\s]*?:([^\s]+)@|[?&](?:ssl)?password=([^&\s]+)")


class Secret(str):
    """Text that shows as `***`; concatenated or encoded it is itself."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Secret":
        return super().__new__(cls, reveal(text))

    def __repr__(self) -> str:
        return f"'{MASK}'"

    def __str__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK


class RedactedError(Exception):
    """The replacement of a foreign error that showed a secret."""


def reveal(text: str) -> str:
    """Return the text itself, to be sent to where it belongs."""
    return str.__str__(text)


def protect(settings: Mapping[str, str]) -> dict[str, str]:
    """Make secrets of the settings that may be one."""
    return {key: Secret(value) if may_be_secret(key) else value for key, value in settings.items()}


def may_be_secret(key: str) -> bool:
    """Return whether a setting may be a secret."""
    return key not in PUBLIC_SETTINGS and _SECRET_SETTINGS.fullmatch(key) is not None


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """Return the secrets in settings; of `client:secret` also the second part."""
    found = [reveal(value) for key, value in settings.items() if may_be_secret(key) and value not in _TRUTHS]
    return [*found, *(value.partition(":")[2] for value in found if ":" in value)]


def secrets_of_environment(environment: Mapping[str, str]) -> list[str]:
    """Return what clients of clouds and databases take from the environment."""
    found = [value for name, value in environment.items() if _SECRET_VARIABLES.fullmatch(name)]
    return [*found, *secrets_of_text("\n".join(value for value in environment.values() if "://" in value))]


def secrets_of_text(text: str) -> list[str]:
    """Return the passwords of the URLs in a text, as they are written and as they are meant."""
    found = [each for pair in _SECRET_IN_URL.findall(text) for each in pair if each]
    return [*found, *(unquote(each) for each in found)]


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text with secrets masked, also as URLs, JSON, Python and base64 write them."""
    forms = _forms(secrets)
    return text if forms is None else forms.sub(MASK, text)


@contextmanager
def without_secrets(secrets: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Take secrets out of any error that is raised inside, and out of its causes. secrets: asked for then."""
    try:
        yield
    except Exception as error:
        redact_error(error, secrets())
        raise


def redact_error(error: BaseException, secrets: Iterable[str]) -> None:
    """Remove secrets from an error and its causes; a foreign error that shows one is replaced."""
    forms = _forms(secrets)
    if forms is None:
        return
    pending, known = [error], {id(error): error}
    while pending:
        each = pending.pop()
        if isinstance(each, IcefieldError):
            _redact_own(each, forms)
        for link in ("__cause__", "__context__"):
            inner = getattr(each, link)
            if inner is None:
                continue
            if id(inner) not in known:
                is_ours = isinstance(inner, IcefieldError) or not _shows(inner, forms)
                known[id(inner)] = inner if is_ours else _stand_in(inner, forms)
                pending += [inner] if is_ours else []
            hidden = each.__suppress_context__
            setattr(each, link, known[id(inner)])
            each.__suppress_context__ = hidden


def _stand_in(error: BaseException, forms: re.Pattern[str]) -> RedactedError:
    return RedactedError(f"{type(error).__name__}: {forms.sub(MASK, str(error))}")


def _forms(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern of how secrets may be written, long ones first, so that none is masked in part."""
    found: set[str] = set()
    for secret in {reveal(each) for given in secrets for each in (given, given.strip())}:
        if len(secret) >= MIN_CHARACTERS:
            found |= {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
            found |= {json.dumps(secret)[1:-1], repr(secret)[1:-1]}
            found.add(base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode())
    patterns = (_pattern(form) for form in sorted(found, key=len, reverse=True))
    return re.compile("|".join(patterns)) if found else None


def _pattern(form: str) -> str:
    return re.escape(form) if len(form) > SURE_CHARACTERS else rf"(?<!\w){re.escape(form)}(?!\w)"


def _redact_own(error: IcefieldError, forms: re.Pattern[str]) -> None:
    for name, value in vars(error).items():
        if isinstance(value, str):
            setattr(error, name, forms.sub(MASK, value))
    error.args = tuple(forms.sub(MASK, value) if isinstance(value, str) else value for value in error.args)


def _shows(error: BaseException, forms: re.Pattern[str]) -> bool:
    return any(forms.search(text) for text in (str(error), repr(error), repr(vars(error))))
