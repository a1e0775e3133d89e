"""Finds what is secret in this installation: in the settings, the environment and key files."""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from pydantic import BaseModel, SecretStr

from agentd.config import Config
from agentd.domain.jsons import is_array, is_object
from agentd.domain.redactor import Redactor, Secret

_LEAST_CHARS = 8  # a shorter value stands in too many texts that mean something else
_NAMED_LEAST_CHARS = 4  # … unless its owner says that it is secret
_LINE_LEAST_CHARS = 16
_WORD_CHARS = 16
_FILE_MOST_BYTES = 65_536
_SECRET_WORDS = frozenset(
    {
        *("KEY", "APIKEY", "TOKEN", "SECRET", "AUTH", "COOKIE", "DSN", "CREDENTIAL", "CREDENTIALS"),
        *("PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "PGPASSWORD"),
    }
)
# A name that ends so is of something that is no secret itself: a limit, a place, who it is.
_HARMLESS_ENDS = frozenset(
    {
        *("URL", "URI", "ENDPOINT", "HOST", "PORT", "NAME", "USER", "USERNAME", "DIR", "SOCK"),
        *("TYPE", "MODE", "METHOD", "LIMIT", "COUNT", "SECONDS", "TIMEOUT", "ENABLED", "VERSION"),
    }
)
_PATH_ENDS = frozenset({"PATH", "FILE"})
_NEVER = frozenset({"PWD", "OLDPWD"})
_IN_URL = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")
_ASSIGNED = re.compile(r"(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:]\s*(.+)")


def known_secrets(config: Config | None, environment: Mapping[str, str]) -> Redactor:
    """Made once for a process. `config`: None while it can not be read."""
    return Redactor(
        [
            *_of_environment(environment, config),
            *(_of_config(config, environment) if config else ()),
        ]
    )


def unreadable_files(config: Config) -> list[Path]:
    """Those of `secrets.files` whose contents can not be kept secret, because nobody knows them."""
    paths = [_path(config, each) for each in config.secrets.files]
    return [path for path in paths if _contents(path) is None]


def _of_environment(environment: Mapping[str, str], config: Config | None) -> Iterator[Secret]:
    for name, value in environment.items():
        # What agentd's own variables say stands in the settings.
        if config and (name in config.secrets.harmless or name.startswith("AGENTD_")):
            continue
        yield from _of_setting(name, value)
        for password in _IN_URL.findall(value):
            spellings = dict.fromkeys([password, unquote(password)])
            yield from _long_enough([Secret(name, each) for each in spellings], _LEAST_CHARS)


def _of_config(config: Config, environment: Mapping[str, str]) -> Iterator[Secret]:
    for key, value in _settings(config, ""):
        if isinstance(value, SecretStr):
            secret = Secret(key, value.get_secret_value().strip())
            yield from _long_enough([secret], _LEAST_CHARS)
        elif isinstance(value, str | Path):
            yield from _of_setting(key, str(value), config.home)
    for name in config.secrets.variables:
        secret = Secret(name, environment.get(name, "").strip())
        yield from _long_enough([secret], _NAMED_LEAST_CHARS)
    for each in config.secrets.files:
        path = _path(config, each)
        yield from _of_file(path.name, path, is_named=True)


def _settings(value: object, key: str) -> Iterator[tuple[str, object]]:
    """Every value under its dotted key, also those of sections that stand in a list."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _settings(getattr(value, name), f"{key}.{name}" if key else name)
    elif is_object(value):
        for name, each in value.items():
            yield from _settings(each, f"{key}.{name}")
    elif isinstance(value, list | tuple):
        for each in cast("Iterable[object]", value):
            yield from _settings(each, key)
    else:
        yield key, value


def _of_setting(name: str, value: str, base: Path = Path("/")) -> Iterator[Secret]:
    """Of one whose name says that it is secret, or where a secret lies."""
    words = _words(name)
    if _SECRET_WORDS.isdisjoint(words) or name in _NEVER:
        return
    value = value.strip()
    path = base / os.path.expanduser(value)  # noqa: PTH111 - Path's raises where there is no such user
    if value and os.path.exists(path):  # noqa: PTH110 - Path's raises for what can be no path
        yield from _of_file(name, path, is_named=False)
    elif words[-1] not in _PATH_ENDS and not _is_harmless(words) and not _is_word(value):
        yield from _long_enough([Secret(name, value)], _LEAST_CHARS)


def _of_file(name: str, path: Path, *, is_named: bool) -> Iterator[Secret]:
    """What is secret in a file: all of it, its long lines, the values of its fields."""
    text = (_contents(path) or "").strip()
    least = _NAMED_LEAST_CHARS if is_named else _LEAST_CHARS
    try:
        document: object = json.loads(text)
    except ValueError:
        document = None
    if is_object(document) or is_array(document):
        found = list(_of_json(document)) or list(_texts(document))
        for each in found:
            yield from _long_enough([Secret(name, each), *_lines(name, each)], least)
        return
    yield from _long_enough([Secret(name, text)], least)
    yield from _long_enough(_lines(name, text), least)


def _lines(name: str, text: str) -> Iterator[Secret]:
    """Of a text of several: the long ones, and what is assigned in one."""
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        assigned = _ASSIGNED.fullmatch(line)
        value = assigned[1].strip("\"'") if assigned else ""
        if len(value) >= _NAMED_LEAST_CHARS:
            if not _is_word(value):
                yield Secret(name, value)
        elif len(lines) > 1 and len(line) >= _LINE_LEAST_CHARS and line[0] not in "-#":
            yield Secret(name, line, is_part=True)


def _of_json(value: object, field: str = "") -> Iterator[str]:
    """The texts whose field says that they are secret."""
    if is_object(value):
        for name, each in value.items():
            yield from _of_json(each, name)
    elif is_array(value):
        for each in value:
            yield from _of_json(each, field)
    elif isinstance(value, str):
        words = _words(field)
        if not _SECRET_WORDS.isdisjoint(words) and not _is_harmless(words):
            yield value


def _texts(value: object) -> Iterator[str]:
    if is_object(value):
        for each in value.values():
            yield from _texts(each)
    elif is_array(value):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def _words(name: str) -> list[str]:
    """API_KEY, api-key, models.api_key and apiKey alike."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[.\-]", "_", name).upper().split("_")


def _is_harmless(words: Sequence[str]) -> bool:
    return words[-1] in _HARMLESS_ENDS or "PUBLIC" in words


def _is_word(value: str) -> bool:
    """A password that is a plain word would take that word out of every text."""
    return value.isascii() and value.isalpha() and value.islower() and len(value) < _WORD_CHARS


def _long_enough(secrets: Iterable[Secret], least_chars: int) -> Iterator[Secret]:
    return (secret for secret in secrets if len(secret.value) >= least_chars)


def _path(config: Config, name: str) -> Path:
    return config.home / os.path.expanduser(name)  # noqa: PTH111 - Path's raises without that user


def _contents(path: Path) -> str | None:
    """None: there is no readable file of a sensible size."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _FILE_MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return None
