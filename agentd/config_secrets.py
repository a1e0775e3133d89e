"""What else is secret, beside keys in the settings and variables whose names say so."""

from pydantic import Field

from agentd.config_sections import Section


class SecretsConfig(Section):
    variables: list[str] = Field(
        default_factory=list,
        description="Environment variables whose values are secret although their names do not say "
        "so.",
    )
    files: list[str] = Field(
        default_factory=list,
        description="Files whose contents are secret: keys, passwords, NAME=VALUE lines; relative: "
        "in the home.",
    )
    harmless: list[str] = Field(
        default_factory=list,
        description="Environment variables that sound secret and are not; their values are shown.",
    )
