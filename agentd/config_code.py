"""The section [code]: programs that the model writes."""

from pydantic import Field

from agentd.config_sections import Section


class CodeConfig(Section):
    enabled: bool = Field(
        True, description="Whether the model may write programs that call tools (execute_code)."
    )
    seconds: float = Field(
        60, gt=0, le=3600, description="How long a program may run, its tool calls not counted."
    )
    tool_calls: int = Field(25, ge=1, le=1000, description="Tool calls that one program may make.")
    memory_mb: int = Field(
        64,
        ge=8,
        le=4096,
        description="Memory of a Python program; a TypeScript one gets as much "
        "beyond the 160 MB that Deno needs.",
    )
    output_bytes: int = Field(1 << 20, ge=1024, le=1 << 26, description="What a program may print.")
    code_bytes: int = Field(51_200, ge=1024, le=1 << 20, description="How long a program may be.")
