"""What counts as secret: by the settings, by the names of variables, by key files."""

import json
from pathlib import Path

import pytest

from agentd.config import Config, load_config
from agentd.domain.redactor import Redactor
from agentd.home import make_home
from agentd.known_secrets import known_secrets, unreadable_files

_VALUE = "v4lue-0123456789"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    make_home(path)
    return path


def config(home: Path, **settings: object) -> Config:
    return load_config(home, {name.replace("__", "."): value for name, value in settings.items()})


def hides(redactor: Redactor, value: str = _VALUE) -> bool:
    return value not in redactor.redact(f"<{value}>")


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "PGPASSWORD",
        "SECRET_KEY_BASE",
        "my-secret",
        "AWS_CREDENTIALS",
        "clientSecret",
        "HTTP_AUTH",
    ],
)
def test_a_variable_whose_name_says_so_is_secret(name: str) -> None:
    assert hides(known_secrets(None, {name: _VALUE}))


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "GIT_AUTHOR_NAME",
        "XAUTHORITY",
        "KEYBOARD",
        "PWD",
        "MAX_TOKENS",
        "TOKEN_LIMIT",
        "SSH_AUTH_SOCK",
        "AUTH_URL",
        "SSH_PUBLIC_KEY",
        "MONKEY",
    ],
)
def test_a_variable_of_another_name_is_none(name: str) -> None:
    assert not known_secrets(None, {name: _VALUE})


@pytest.mark.parametrize("value", ["", "short", "postgres", "      x     ", "/usr/bin"])
def test_what_stands_in_many_texts_is_none(value: str) -> None:
    assert not known_secrets(None, {"DB_PASSWORD": value})


@pytest.mark.parametrize(
    "value", ["~no-such-user", "/" + "x" * 5000, "~/", "a\nb-" * 9, "caf\udce9-key"]
)
def test_a_value_that_looks_like_a_path_is_a_value(value: str) -> None:
    redactor = known_secrets(None, {"API_KEY": value})
    assert bool(redactor) is (len(value) >= 8)
    assert redactor.redact(f"<{value}>") != f"<{value}>" or not redactor


def test_the_password_of_an_address_is_secret() -> None:
    redactor = known_secrets(None, {"DATABASE_URL": f"postgresql://me:{_VALUE}@host/db"})
    assert redactor.redact(f"x {_VALUE}") == "x [secret DATABASE_URL]"
    assert redactor.redact("postgresql://me@host/db") == "postgresql://me@host/db"


def test_a_key_of_the_settings_is_secret(home: Path) -> None:
    asked = config(home, models__anthropic__api_key=_VALUE)
    assert known_secrets(asked, {}).redact(_VALUE) == "[secret models.anthropic.api_key]"


def test_what_the_owner_names_is_secret_and_what_he_excepts_is_none(home: Path) -> None:
    asked = config(home, secrets__variables=["PIN"], secrets__harmless=["DEMO_TOKEN"])
    redactor = known_secrets(asked, {"PIN": "4711", "DEMO_TOKEN": _VALUE})
    assert hides(redactor, "4711")
    assert not hides(redactor)


def test_a_key_file_is_hidden_whole_and_by_its_lines(tmp_path: Path) -> None:
    lines = ["".join(chr(65 + (row * 7 + at) % 26) for at in range(64)) for row in range(3)]
    path = tmp_path / "id"
    text = "\n".join(["-----BEGIN KEY-----", *lines, "-----END KEY-----", ""])
    path.write_text(text)
    redactor = known_secrets(None, {"SSH_KEY_PATH": str(path)})
    for line in lines:
        assert hides(redactor, line)
    assert redactor.redact(text.strip()).count("[secret SSH_KEY_PATH]") == 1
    assert not hides(redactor, "-----BEGIN KEY-----")
    assert not hides(redactor, str(path))


def test_a_key_file_of_a_host_command_is_hidden(home: Path) -> None:
    (home / "host_key").write_text(_VALUE)
    (home / "host_known").write_text("known-host-0123456789")
    ssh = {"host": "h", "user": "u", "key_path": "host_key", "known_hosts_path": "host_known"}
    redactor = known_secrets(config(home, host_commands=[{"argv": ["x"], "ssh": ssh}]), {})
    assert hides(redactor)
    assert not hides(redactor, "known-host-0123456789")


def test_of_a_json_key_file_the_secret_fields_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "google.json"
    fields = {
        "type": "service_account",
        "private_key": f"-----BEGIN-----\n{_VALUE * 4}\n-----END-----\n",
        "client": {"refreshToken": "r3fresh-me-now"},
        "token_uri": "https://oauth2.example/token",
    }
    path.write_text(json.dumps(fields))
    redactor = known_secrets(None, {"GOOGLE_APPLICATION_CREDENTIALS": str(path)})
    assert hides(redactor, _VALUE * 4)
    assert hides(redactor, "r3fresh-me-now")
    assert not hides(redactor, "service_account")
    assert not hides(redactor, "https://oauth2.example/token")
    assert _VALUE not in redactor.redact(path.read_text())


def test_files_that_the_owner_names(home: Path) -> None:
    (home / "pin.txt").write_text("4711\n")
    (home / "app.env").write_text(f'# comment\nexport A="{_VALUE}"\nB=plain\nC=x\n')
    asked = config(home, secrets__files=["pin.txt", "app.env", "gone", "."])
    redactor = known_secrets(asked, {})
    assert hides(redactor, "4711")
    assert hides(redactor)
    assert not hides(redactor, "plain")
    assert unreadable_files(asked) == [home / "gone", home]
