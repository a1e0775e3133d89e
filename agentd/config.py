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
from typing import Any, Literal

from pydantic import Field, PrivateAttr
from pydantic import ValidationError as PydanticError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError

from agentd.config_code import CodeConfig
from agentd.config_commands import CommandsConfig
from agentd.config_errors import explain_problems, unknown_variables
from agentd.config_git import HOST_COMMANDS, GitConfig, HostCommandsConfig
from agentd.config_limits import BudgetConfig, GuardsConfig
from agentd.config_mcp import McpConfig
from agentd.config_secrets import SecretsConfig
from agentd.config_sections import (
    AgentConfig,
    DaemonConfig,
    LogConfig,
    ModelsConfig,
    ResultsConfig,
    RetentionConfig,
    SchedulesConfig,
    StoreConfig,
    WatchdogConfig,
    WorkspaceConfig,
)
from agentd.config_web import EgressConfig
from agentd.domain.capability import Capability
from agentd.domain.errors import ConfigError
from agentd.domain.jsons import is_object

FILE_NAME = "agentd.toml"
_SECRETS = frozenset({"models.anthropic.api_key", "models.openai.api_key"})
# Variables of other tools that people have set already; of two for one key the later one counts.
_BORROWED = {
    "ANTHROPIC_API_KEY": ("models", "anthropic", "api_key"),
    "ANTHROPIC_BASE_URL": ("models", "anthropic", "base_url"),
    "OPENAI_API_KEY": ("models", "openai", "api_key"),
    "OPENAI_BASE_URL": ("models", "openai", "base_url"),
    "KENOBOT_SSH_KEY": ("git", "ssh_key_path"),
    "SSH_KEY_PATH": ("git", "ssh_key_path"),
}


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

    sandbox: Literal["on", "off"] = Field(
        "on",
        description="off: commands run unconfined, with all rights of the daemon. Only for a "
        "machine that can confine nothing and holds nothing else.",
    )
    daemon: DaemonConfig = Field(default_factory=lambda: DaemonConfig.model_validate({}))
    agent: AgentConfig = Field(default_factory=lambda: AgentConfig.model_validate({}))
    models: ModelsConfig = Field(default_factory=lambda: ModelsConfig.model_validate({}))
    guards: GuardsConfig = Field(default_factory=lambda: GuardsConfig.model_validate({}))
    budget: BudgetConfig = Field(default_factory=lambda: BudgetConfig.model_validate({}))
    store: StoreConfig = Field(default_factory=lambda: StoreConfig.model_validate({}))
    schedules: SchedulesConfig = Field(default_factory=lambda: SchedulesConfig.model_validate({}))
    retention: RetentionConfig = Field(default_factory=lambda: RetentionConfig.model_validate({}))
    watchdog: WatchdogConfig = Field(default_factory=lambda: WatchdogConfig.model_validate({}))
    workspace: WorkspaceConfig = Field(default_factory=lambda: WorkspaceConfig.model_validate({}))
    egress: EgressConfig = Field(default_factory=lambda: EgressConfig.model_validate({}))
    commands: CommandsConfig = Field(default_factory=lambda: CommandsConfig.model_validate({}))
    results: ResultsConfig = Field(default_factory=lambda: ResultsConfig.model_validate({}))
    code: CodeConfig = Field(default_factory=lambda: CodeConfig.model_validate({}))
    secrets: SecretsConfig = Field(default_factory=lambda: SecretsConfig.model_validate({}))
    mcp: McpConfig = Field(default_factory=lambda: McpConfig.model_validate({}))
    log: LogConfig = Field(default_factory=lambda: LogConfig.model_validate({}))
    git: GitConfig = Field(default_factory=lambda: GitConfig.model_validate({}))
    host_commands: HostCommandsConfig = Field((), description=HOST_COMMANDS)

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
    def archive_path(self) -> Path:
        return self._home / "archive"

    @property
    def code_key_path(self) -> Path:
        return self._home / "code.key"

    @property
    def run_path(self) -> Path:
        return self._home / "run"

    @property
    def branches_path(self) -> Path:
        return self._home / "run" / "branches"

    @property
    def prompts_path(self) -> Path:
        return self._home / "prompts"

    @property
    def mcp_path(self) -> Path:
        return self._home / "mcp.json"

    @property
    def mcp_tokens_path(self) -> Path:
        return self._home / "mcp-tokens"

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
    _refuse_own_folders(config)
    return config


def _refuse_own_folders(config: Config) -> None:
    """What tools may write must not be what the daemon believes or runs."""
    own = {config.home, config.run_path, config.tools_path, config.archive_path}
    for path in (config.workspace_path, *(Path(each.path) for each in config.workspace.roots)):
        real = path.resolve()
        if real in own or config.tools_path in real.parents:
            raise ConfigError(
                f"[workspace]: {path} is a folder of this agentd itself",
                hint="Name one for the files of the tools, for example workspace, in the home.",
            )


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
    if _SECRETS.isdisjoint(flatten(in_file)):
        return
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(
            f"{path} holds a key and can be read by other users", hint=f"chmod 600 {path}"
        )
