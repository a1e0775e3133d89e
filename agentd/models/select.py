"""From "provider:name" to a provider. Their SDKs cost a second: imported when used."""

from dataclasses import dataclass

from agentd.domain.errors import ConfigError
from agentd.models.model import Model
from agentd.models.scripted import ScriptedModel

OPENAI_MISSING = "the package openai, which openai:MODEL needs, is not installed"
OPENAI_HINT = "Install it where agentd is: pip install 'agentd[openai]'"


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What providers need to know. `stall_s`: silence in a reply that counts as broken."""

    anthropic_key: str | None
    anthropic_base_url: str | None
    stall_s: float
    openai_key: str | None = None
    openai_base_url: str | None = None


def open_model(spec: str, settings: ProviderSettings) -> Model:
    """The model that `spec` names. Raises ConfigError."""
    provider, _, name = spec.partition(":")
    if name and provider == "scripted":
        return ScriptedModel(name)
    if name and provider == "anthropic":
        return _anthropic(name, settings)
    if name and provider == "openai":
        return _openai(name, settings)
    raise ConfigError(
        f"unknown model {spec!r}",
        hint="Write anthropic:MODEL, openai:MODEL or scripted:FILE (scripted:demo).",
    )


def _anthropic(name: str, settings: ProviderSettings) -> Model:
    from agentd.models.anthropic import AnthropicModel  # noqa: PLC0415 - see the module's head

    return AnthropicModel(
        name,
        api_key=settings.anthropic_key,
        base_url=settings.anthropic_base_url,
        stall_s=settings.stall_s,
    )


def _openai(name: str, settings: ProviderSettings) -> Model:
    try:
        from agentd.models.openai import OpenAiModel  # noqa: PLC0415 - see the module's head
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openai":
            raise
        raise ConfigError(OPENAI_MISSING, hint=OPENAI_HINT) from error

    return OpenAiModel(
        name,
        api_key=settings.openai_key,
        base_url=settings.openai_base_url,
        stall_s=settings.stall_s,
    )
