"""The section [mcp]: servers whose tools are used, and the server that agentd is."""

from pydantic import Field

from agentd.config_sections import Section


class McpConfig(Section):
    direct_tools_most: int = Field(
        60,
        ge=0,
        description="Tools that a model is shown at the most; with more, those of MCP servers are "
        "reached through mcp_search and mcp_exec only.",
    )
    connect_seconds: float = Field(
        30, gt=0, description="How long a server may take to start and to list its tools."
    )
    call_seconds: float = Field(120, gt=0, description="How long one call of its tools may take.")
    close_seconds: float = Field(
        5, ge=0.1, description="How long a server has to end by itself before it is killed."
    )
    idle_seconds: float = Field(
        900, gt=0, description="A server that nobody called for so long is closed until it is."
    )
    breaker_threshold: int = Field(
        3, ge=1, description="Failures in a row after which a server is left alone for a while."
    )
    breaker_cooldown_seconds: float = Field(
        60, gt=0, description="How long it is left alone before one try."
    )
    serve: list[str] = Field(
        default_factory=list,
        description="Tools that `agentd mcp serve` offers besides its usual ones, by name; "
        "* stands for any characters.",
    )
