"""From "provider:name" to a provider. The Anthropic SDK costs a second: imported when used."""

from dataclasses import dataclass

from agentd.domain.errors import ConfigError
from agentd.models.model import Model
from agentd.models.scripted import ScriptedModel


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What providers need to know. `stall_s`: silence in a reply that counts as broken."""

    anthropic_key: str | None
    anthropic_base_url: str | None
    stall_s: float


def open_model(spec: str, settings: ProviderSettings) -> Model:
    """The model that `spec` names. Raises ConfigError."""
    provider, _, name = spec.partition(":")
    if name and provider == "scripted":
        return ScriptedModel(name)
    if name and provider == "anthropic":
        from agentd.models.anthropic import AnthropicModel  # noqa: PLC0415 - see the module's head

        return AnthropicModel(
            name,
            api_key=settings.anthropic_key,
            base_url=settings.anthropic_base_url,
            stall_s=settings.stall_s,
        )
    raise ConfigError(
        f"unknown model {spec!r}", hint="Write anthropic:MODEL or scripted:FILE (scripted:demo)."
    )
