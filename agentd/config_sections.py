"""The sections of the settings: every key with its meaning, its bounds and its default."""

from pathlib import Path
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from agentd.domain.usage import Price

_PROVIDERS = ("anthropic", "openai", "scripted")


def model_spec(text: str) -> str:
    """`text`, if it is PROVIDER:NAME. Raises ValueError, which says what is expected."""
    provider, _, name = text.partition(":")
    if provider not in _PROVIDERS or not name:
        raise ValueError(
            f"must be PROVIDER:NAME with one of {', '.join(_PROVIDERS)}, e.g. scripted:demo"
        )
    return text


ModelSpec = Annotated[str, AfterValidator(model_spec)]


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("must be a time zone, e.g. Europe/Berlin or UTC") from error
    return text


TimeZone = Annotated[str, AfterValidator(_zone)]


class Section(BaseModel):
    """One table of agentd.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DaemonConfig(Section):
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

    heartbeat_seconds: float = Field(
        15, gt=0, description="How often a daemon renews the leases of its runs."
    )
    lease_seconds: float = Field(
        60, gt=0, description="How long a run owns its task without being renewed."
    )
    reap_seconds: float = Field(
        30, gt=0, description="How often to look for runs whose lease has run out."
    )

    @model_validator(mode="after")
    def _lease_outlives_a_missed_beat(self) -> Self:
        if self.lease_seconds < 2 * self.heartbeat_seconds:
            raise ValueError("lease_seconds must be at least twice heartbeat_seconds")
        return self


class AgentConfig(Section):
    model: ModelSpec = Field(
        "anthropic:claude-sonnet-5-5",
        description="The model of tasks that name none: anthropic:MODEL, openai:MODEL or "
        "scripted:FILE.",
    )
    max_tool_iterations: int = Field(
        20, ge=0, description="Replies of the model before a task fails; 0 = unlimited."
    )
    max_tokens: int = Field(8192, ge=1, description="Tokens of one reply at the most.")
    deadline_seconds: float = Field(3600, gt=0, description="How long one run of a task may take.")
    max_reminders: int = Field(
        2, ge=0, description="Reminders in a row to a reply without a tool call."
    )
    max_attempts: int = Field(
        3,
        ge=1,
        description="Runs of a task that may end with a passing error or with their daemon.",
    )
    attempt_base_seconds: float = Field(
        10, ge=0, description="The wait before the second attempt; it doubles."
    )
    attempt_cap_seconds: float = Field(600, ge=0, description="The longest such wait.")
    max_wait_days: float = Field(
        30,
        gt=0,
        le=36500,
        description="A waiting task goes on after this time, whatever it waits for.",
    )


class AnthropicConfig(Section):
    api_key: SecretStr | None = Field(
        None, description="The key; better kept in the variable ANTHROPIC_API_KEY."
    )
    base_url: str | None = Field(
        None, description="Another server that speaks the Messages API; also ANTHROPIC_BASE_URL."
    )


class OpenAiConfig(Section):
    api_key: SecretStr | None = Field(
        None,
        description="The key; better kept in the variable OPENAI_API_KEY. A server of your own may "
        "need none.",
    )
    base_url: str | None = Field(
        None,
        description="Another server that speaks Chat Completions, e.g. http://localhost:1234/v1; "
        "also OPENAI_BASE_URL.",
    )


class PriceConfig(Section):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_write: float = Field(ge=0)
    cache_read: float = Field(ge=0)


class ModelsConfig(Section):
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
    fallback: ModelSpec | None = Field(
        None,
        description="The model that is asked while the first one's provider has an outage; better "
        "one of another provider.",
    )
    breaker_threshold: int = Field(
        5, ge=1, description="Failures in a row after which a provider is left alone."
    )
    breaker_cooldown_seconds: float = Field(
        60, gt=0, description="How long it is left alone before one call tries it again."
    )
    prices: dict[str, PriceConfig] = Field(
        default_factory=dict,
        description="List prices that the built-in table lacks or has wrong, by model: input, "
        "output, cache_write, cache_read in US dollars for a million tokens.",
    )
    anthropic: AnthropicConfig = Field(
        default_factory=lambda: AnthropicConfig.model_validate({}), description="Claude."
    )
    openai: OpenAiConfig = Field(
        default_factory=lambda: OpenAiConfig.model_validate({}),
        description="OpenAI, and every server that speaks as it does.",
    )

    def own_prices(self) -> dict[str, Price]:
        """`prices`, as they are counted with."""
        return {name: Price(**each.model_dump()) for name, each in self.prices.items()}


class StoreConfig(Section):
    busy_seconds: float = Field(
        30, gt=0, description="How long to wait for another process that holds the database."
    )
    transaction_seconds: float = Field(
        5, gt=0, description="How long one transaction may stay open."
    )


class SchedulesConfig(Section):
    timezone: TimeZone = Field(
        "UTC", description="The time zone of schedules that name none: an IANA name."
    )
    most: int = Field(50, ge=1, description="Schedules that a home may have.")
    min_interval_seconds: float = Field(
        60, ge=1, description="The shortest interval between two occurrences."
    )
    late_seconds: float = Field(
        60, ge=0, description="An occurrence that was not fired after this time counts as missed."
    )
    backlog_most: int = Field(
        100, ge=1, description="Missed occurrences that the policy `all` makes up for."
    )
    gate_seconds: float = Field(60, gt=0, description="How long the gate of a schedule may take.")


class RetentionConfig(Section):
    days: float = Field(
        90,
        ge=0,
        le=36500,
        description="Sessions in which nothing has happened for so long move to the archive; "
        "0 = never.",
    )
    every_hours: float = Field(6, gt=0, description="How often the daemon looks for them.")


class WatchdogConfig(Section):
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


def _root_path(text: str) -> str:
    path = Path(text)
    if not path.is_absolute() or ".." in path.parts or path == Path("/"):
        raise ValueError("must be an absolute path without .., and not / itself")
    return text


class RootConfig(Section):
    path: Annotated[str, AfterValidator(_root_path)]
    writable: bool = False


class WorkspaceConfig(Section):
    path: str = Field(
        "workspace", description="The folder that tools may read and write; relative: in the home."
    )
    roots: tuple[RootConfig, ...] = Field(
        (),
        description="Further folders that tools may reach by absolute paths: tables "
        "[[workspace.roots]], each with a path and writable (true or false, the default).",
    )


class ResultsConfig(Section):
    store_over_chars: int = Field(
        10_000,
        ge=500,
        description="A longer result of a tool is stored, and the model gets its first page.",
    )
    page_chars: int = Field(8000, ge=200, description="Characters of one page of a stored result.")
    inline_chars: int = Field(
        40_000,
        ge=1000,
        description="Characters that the model gets to see at once of a result that has pages of "
        "its own; the most of any result.",
    )
    most_chars: int = Field(
        5_000_000,
        ge=10_000,
        description="Characters of a result that are stored; of a longer one the middle is left "
        "out.",
    )

    @model_validator(mode="after")
    def _fits_in_line(self) -> Self:
        if max(self.store_over_chars, self.page_chars) > self.inline_chars:
            raise ValueError("store_over_chars and page_chars must not be above inline_chars")
        return self


class LogConfig(Section):
    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least level that is logged."
    )
    format: Literal["auto", "pretty", "json"] = Field(
        "auto", description="auto: pretty on a terminal, JSON elsewhere."
    )
