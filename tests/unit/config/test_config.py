"""One frozen object from file and environment; what is wrong is named (config_errors.py)."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from agentd.config import Config, flatten, load_config
from agentd.config_errors import fields
from agentd.config_text import explain, template
from agentd.domain.errors import ConfigError
from agentd.home import make_home

_ROOT = Path(__file__).parents[3]

_BORROWED = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in _BORROWED:
        monkeypatch.delenv(name, raising=False)
    make_home(tmp_path / "home")
    return tmp_path / "home"


def write(home: Path, text: str) -> None:
    (home / "agentd.toml").write_text(text)


def wrong(home: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(home)
    return str(caught.value)


def test_without_anything_the_defaults_hold(home: Path) -> None:
    config = load_config(home)
    assert config.daemon.concurrency == 4
    assert config.agent.max_tool_iterations == 20
    assert config.agent.max_tokens == 8192
    assert not config.sources
    assert config.database_path == home / "agentd.duckdb"


def test_the_command_line_goes_before_the_environment_before_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "[daemon]\nconcurrency = 5\npoll_seconds = 2\ndrain_seconds = 3\n")
    monkeypatch.setenv("AGENTD_DAEMON__CONCURRENCY", "6")
    monkeypatch.setenv("AGENTD_DAEMON__POLL_SECONDS", "7")
    config = load_config(home, {"daemon.concurrency": 8})
    daemon = config.daemon
    assert (daemon.concurrency, daemon.poll_seconds, daemon.drain_seconds) == (8, 7, 3)
    assert dict(config.sources) == {
        "daemon.concurrency": "override",
        "daemon.poll_seconds": "environment",
        "daemon.drain_seconds": "file",
    }


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_providers_own_variables_are_taken(
    provider: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-ant-1")
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", "http://localhost:1")
    section = getattr(load_config(home).models, provider)
    assert section.api_key.get_secret_value() == "sk-ant-1"
    assert section.base_url == "http://localhost:1"
    assert "sk-ant-1" not in repr(section)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[daemon]\nconcurency = 1", ["daemon.concurency", "concurrency"]),
        ("[demon]\nx = 1", ["demon"]),
        ("[daemon]\nconcurrency = 'many'", ["daemon.concurrency", "many", "integer"]),
        ("[daemon]\nconcurrency = 0", ["daemon.concurrency", "0", "1"]),
        ("[agent]\nmodel = 'gpt-9'", ["agent.model", "gpt-9", "scripted:demo"]),
        ("[log]\nlevel = 'loud'", ["log.level", "loud", "debug"]),
        ("[models.prices.x]\ninput = 1", ["models.prices", "output"]),
        ("[models]\nfallback = 'gpt-9'", ["models.fallback", "gpt-9", "openai"]),
        ("[models]\nbreaker_threshold = 0", ["models.breaker_threshold", "0", "1"]),
        ("[daemon\n", ["not valid TOML", "line 1"]),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_file_key_and_expectation(
    text: str, says: list[str], home: Path
) -> None:
    write(home, text)
    message = wrong(home)
    for each in [str(home / "agentd.toml"), *says]:
        assert each in message


def test_every_wrong_key_is_named_at_once(home: Path) -> None:
    write(home, "[daemon]\nconcurrency = 0\nnonsense = 1\n")
    message = wrong(home)
    assert "daemon.concurrency" in message
    assert "daemon.nonsense" in message


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("AGENTD_DAEMON__CONCURRENCY", "many", "AGENTD_DAEMON__CONCURRENCY"),
        ("AGENTD_DAEMON__CONCURENCY", "1", "AGENTD_DAEMON__CONCURRENCY"),
        ("AGENTD_NONSENSE", "1", "AGENTD_NONSENSE"),
        ("AGENTD_COMMANDS__ENVIRONMENT", '["LANG", "MY_KEY"]', "environment.1: MY_KEY looks"),
        ("AGENTD_HOST_COMMANDS", '[{"argv": []}]', "host_commands.0.argv"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named_by_its_variable(
    variable: str, value: str, says: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    message = wrong(home)
    assert variable in message
    assert says in message


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_key_in_a_file_that_others_can_read_is_refused(provider: str, home: Path) -> None:
    write(home, f'[models.{provider}]\napi_key = "sk-ant-1"\n')
    (home / "agentd.toml").chmod(0o644)
    message = wrong(home)
    assert "chmod 600" in message
    assert "sk-ant-1" not in message
    (home / "agentd.toml").chmod(0o600)
    assert getattr(load_config(home).models, provider).api_key is not None


def test_it_is_frozen(home: Path) -> None:
    config = load_config(home)
    with pytest.raises(ValidationError):
        config.daemon = config.daemon
    with pytest.raises(ValidationError):
        config.daemon.concurrency = 3


def test_the_documented_file_is_what_the_code_says() -> None:
    assert (_ROOT / "config" / "agentd.toml").read_text() == template()


def test_every_key_is_documented_and_the_documented_defaults_hold(home: Path) -> None:
    for key, field in fields(Config):
        assert field.description, key
    kept = re.findall(r"^(?:# )?(\[[\w.]+\]|\w+ = .+)$", template(), flags=re.MULTILINE)
    assert len(kept) > 20
    write(home, "\n".join(kept))
    defaults = load_config(home)
    write(home, "")
    assert defaults.model_dump() == load_config(home).model_dump()


def test_explain_has_every_key_once(home: Path) -> None:
    keys = [each.key for each in explain(load_config(home))]
    assert keys == [key for key, _ in fields(Config)]


def test_flatten_keeps_empty_tables() -> None:
    assert flatten({"a": {"b": 1, "c": {}}, "d": 2}) == {"a.b": 1, "a.c": {}, "d": 2}


def test_further_roots_are_tables_with_absolute_paths(home: Path) -> None:
    write(home, '[[workspace.roots]]\npath = "/srv/data"\n')
    (root,) = load_config(home).workspace.roots
    assert (root.path, root.writable) == ("/srv/data", False)
    for wrong in ("data", "/", "/srv/../etc"):
        write(home, f'[[workspace.roots]]\npath = "{wrong}"\n')
        with pytest.raises(ConfigError, match="must be an absolute path"):
            load_config(home)
