"""agentd.toml and AGENTD_* variables as one frozen object.

Command line over environment over file over defaults. Every key stands here once, with its meaning,
its bounds and its default; `config/agentd.toml` and `agentd init` are made from it.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, SecretStr
from pydantic import ValidationError as PydanticError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError

from agentd.config_errors import explain_problems, unknown_variables
from agentd.domain.capability import Capability
from agentd.domain.errors import ConfigError
from agentd.domain.jsons import is_object

FILE_NAME = "agentd.toml"
_PROVIDERS = ("anthropic", "scripted")
# Variables of the providers' own tools that people have set already.
_BORROWED = {
    "ANTHROPIC_API_KEY": ("models", "anthropic", "api_key"),
    "ANTHROPIC_BASE_URL": ("models", "anthropic", "base_url"),
}


def model_spec(text: str) -> str:
    """`text`, if it is PROVIDER:NAME. Raises ValueError, which says what is expected."""
    provider, _, name = text.partition(":")
    if provider not in _PROVIDERS or not name:
        raise ValueError(
            f"must be PROVIDER:NAME with one of {', '.join(_PROVIDERS)}, e.g. scripted:demo"
        )
    return text


ModelSpec = Annotated[str, AfterValidator(model_spec)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DaemonConfig(_Section):
    concurrency: int = Field(4, ge=1, le=1000, description="Tasks that one daemon works at a time.")
    drain_seconds: float = Field(
        30, ge=0, description="How long running calls may go on after SIGTERM."
    )
    poll_seconds: float = Field(
        1,
        ge=0.05,
        le=3600,
        description="How often to look whether the queue has changed although nobody said so.",
    )


class AgentConfig(_Section):
    model: ModelSpec = Field(
        "anthropic:claude-sonnet-5-5",
        description="The model of tasks that name none: anthropic:MODEL or scripted:FILE.",
    )
    max_tool_iterations: int = Field(
        20, ge=0, description="Replies of the model before a task fails; 0 = unlimited."
    )
    max_tokens: int = Field(8192, ge=1, description="Tokens of one reply at the most.")
    deadline_seconds: float = Field(3600, gt=0, description="How long one run of a task may take.")
    max_reminders: int = Field(
        2, ge=0, description="Reminders in a row to a reply without a tool call."
    )
    max_wait_days: float = Field(
        30,
        gt=0,
        le=36500,
        description="A waiting task goes on after this time, whatever it waits for.",
    )


class AnthropicConfig(_Section):
    api_key: SecretStr | None = Field(
        None, description="The key; better kept in the variable ANTHROPIC_API_KEY."
    )
    base_url: str | None = Field(
        None, description="Another server that speaks the Messages API; also ANTHROPIC_BASE_URL."
    )


class PriceConfig(_Section):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_write: float = Field(ge=0)
    cache_read: float = Field(ge=0)


class ModelsConfig(_Section):
    retry_attempts: int = Field(
        6, ge=1, le=100, description="Tries for one reply: overload, outages, broken streams."
    )
    retry_base_seconds: float = Field(
        1, ge=0, description="The first wait between two tries; it doubles."
    )
    retry_cap_seconds: float = Field(32, ge=0, description="The longest such wait.")
    retry_after_cap_seconds: float = Field(
        300, ge=0, description="A provider that asks for a longer wait ends the task."
    )
    stall_seconds: float = Field(
        120, gt=0, description="Silence in a reply that counts as a broken connection."
    )
    prices: dict[str, PriceConfig] = Field(
        default_factory=dict,
        description="List prices that the built-in table lacks or has wrong, by model: input, "
        "output, cache_write, cache_read in US dollars for a million tokens.",
    )
    anthropic: AnthropicConfig = Field(
        default_factory=lambda: AnthropicConfig.model_validate({}), description="Claude."
    )


class StoreConfig(_Section):
    busy_seconds: float = Field(
        30, gt=0, description="How long to wait for another process that holds the database."
    )
    transaction_seconds: float = Field(
        5, gt=0, description="How long one transaction may stay open."
    )


class WatchdogConfig(_Section):
    interval_seconds: float = Field(
        60, ge=5, le=3600, description="How often a daemon looks how well it is."
    )
    first_seconds: float = Field(
        5, ge=0, le=3600, description="How long after its start it looks for the first time."
    )
    memory_warn_mb: float = Field(256, gt=0, description="Memory that is worth a warning.")
    memory_fail_mb: float = Field(
        512, gt=0, description="Memory that is too much; systemd then restarts the daemon."
    )
    lag_warn_ms: float = Field(
        500, gt=0, description="How late the event loop may come to a timer without a warning."
    )
    lag_fail_ms: float = Field(
        5000, gt=0, description="A loop that is mostly later than this has failed."
    )
    disk_least_mb: float = Field(
        200, ge=0, description="Free disk space below which a home is not well; twice this warns."
    )
    database_warn_ms: float = Field(
        1000, gt=0, description="How long the database may take to answer without a warning."
    )
    database_fail_ms: float = Field(
        10_000, gt=0, description="A database that takes longer has failed."
    )


class WorkspaceConfig(_Section):
    path: str = Field(
        "workspace", description="The folder that tools may read and write; relative: in the home."
    )


class ResultsConfig(_Section):
    inline_chars: int = Field(
        40_000, ge=1000, description="Characters of a tool's result that the model gets to see."
    )


class LogConfig(_Section):
    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least level that is logged."
    )
    format: Literal["auto", "pretty", "json"] = Field(
        "auto", description="auto: pretty on a terminal, JSON elsewhere."
    )


_file: ContextVar[Path] = ContextVar("agentd_config_file")


class _BorrowedVariables(PydanticBaseSettingsSource):
    """The variables of the providers' own tools."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        raise AssertionError(field, field_name)  # only __call__ is used

    def __call__(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for variable, way in _BORROWED.items():
            if value := os.environ.get(variable):
                here = found
                for name in way[:-1]:
                    here = here.setdefault(name, {})
                here[way[-1]] = value
        return found


class Config(BaseSettings, Capability):
    """All settings of one home. Paths are derived from it."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="AGENTD_", env_nested_delimiter="__"
    )

    daemon: DaemonConfig = Field(default_factory=lambda: DaemonConfig.model_validate({}))
    agent: AgentConfig = Field(default_factory=lambda: AgentConfig.model_validate({}))
    models: ModelsConfig = Field(default_factory=lambda: ModelsConfig.model_validate({}))
    store: StoreConfig = Field(default_factory=lambda: StoreConfig.model_validate({}))
    watchdog: WatchdogConfig = Field(default_factory=lambda: WatchdogConfig.model_validate({}))
    workspace: WorkspaceConfig = Field(default_factory=lambda: WorkspaceConfig.model_validate({}))
    results: ResultsConfig = Field(default_factory=lambda: ResultsConfig.model_validate({}))
    log: LogConfig = Field(default_factory=lambda: LogConfig.model_validate({}))

    _home: Path = PrivateAttr(default=Path())
    _sources: dict[str, str] = PrivateAttr(default_factory=dict[str, str])

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        borrowed = _BorrowedVariables(settings_cls)
        toml = TomlConfigSettingsSource(settings_cls, toml_file=_file.get())
        _layers.set({"override": init_settings, "environment": env_settings, "borrowed": borrowed})
        return init_settings, env_settings, borrowed, toml

    def settle(self, home: Path, sources: Mapping[str, str]) -> None:
        """Note whose settings these are and where they came from. Only `load_config` calls this."""
        self._home = home
        self._sources.update(sources)

    @property
    def home(self) -> Path:
        return self._home

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each key that is no default came from: dotted key → override, environment, file."""
        return self._sources

    @property
    def database_path(self) -> Path:
        return self._home / "agentd.duckdb"

    @property
    def workspace_path(self) -> Path:
        return self._home / self.workspace.path

    @property
    def run_path(self) -> Path:
        return self._home / "run"

    @property
    def prompts_path(self) -> Path:
        return self._home / "prompts"

    @property
    def tools_path(self) -> Path:
        return self._home / "tools"


_layers: ContextVar[dict[str, PydanticBaseSettingsSource]] = ContextVar("agentd_config_layers")


def load_config(home: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """The settings of `home`. `overrides`: dotted keys from the command line.

    Raises ConfigError that names every wrong key, where it stands and what is expected.
    """
    path = home / FILE_NAME
    in_file = _read(path)
    _file.set(path)
    problems = unknown_variables(Config, os.environ)
    if problems:
        raise ConfigError("\n".join(problems))
    try:
        config = Config(**_nested(overrides or {}))
    except PydanticError as error:
        where = {**dict.fromkeys(flatten(in_file), "file"), **_outer_sources()}
        raise ConfigError(explain_problems(Config, error, where, path)) from error
    except SettingsError as error:
        raise ConfigError(f"environment: {error}: {error.__cause__}") from error
    from_file = [key for key, value in flatten(in_file).items() if value != {}]
    config.settle(home.resolve(), dict.fromkeys(from_file, "file") | _outer_sources())
    _refuse_readable_secrets(path, in_file)
    return config


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if is_object(value) and value:
            flat |= flatten(value, f"{key}.")
        else:
            flat[key] = value
    return flat


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can not be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in dotted.items():
        *way, last = key.split(".")
        here = nested
        for name in way:
            here = here.setdefault(name, {})
        here[last] = value
    return nested


def _outer_sources() -> dict[str, str]:
    names = {"borrowed": "environment", "environment": "environment", "override": "override"}
    layers = _layers.get()
    found: dict[str, str] = {}
    for layer, name in names.items():
        found |= dict.fromkeys(flatten(layers[layer]()), name)
    return found


def _refuse_readable_secrets(path: Path, in_file: Mapping[str, Any]) -> None:
    if "models.anthropic.api_key" not in flatten(in_file):
        return
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(
            f"{path} holds a key and can be read by other users", hint=f"chmod 600 {path}"
        )
