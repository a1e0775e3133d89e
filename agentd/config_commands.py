"""The section of commands: what they get, and how much they may take."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agentd.config_sections import Section

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def _harmless(name: str) -> str:
    if name.startswith("AGENTD_") or any(word in name.upper() for word in _SECRET_WORDS):
        raise ValueError(f"{name} looks like a secret; what commands see, the model sees")
    return name


class CommandsConfig(Section):
    transactional: bool = Field(
        True,
        description="Let a command work on a branch of the files, which is merged with its result, "
        "where the machine can do that.",
    )
    network: Literal["none", "filtered"] = Field(
        "none", description="filtered: commands reach what the rules of [egress] let through."
    )
    environment: list[Annotated[str, AfterValidator(_harmless)]] = Field(
        default_factory=list,
        description="Variables of the daemon that commands see; keys and tokens are refused.",
    )
    processes: int = Field(512, ge=8, description="Processes and threads of one command.")
    memory_mb: int = Field(4096, ge=64, description="Memory of one command, all its processes.")
    cpu_seconds: int = Field(3600, ge=1, description="Processor time of one process.")
    file_mb: int = Field(4096, ge=1, description="The largest file that a process may write.")
    open_files: int = Field(4096, ge=64, description="Files that one process may have open.")
    tmp_mb: int = Field(512, ge=1, description="The /tmp of a command; it lies in memory.")
    disk_mb: int = Field(8192, ge=1, description="What one command may write on its branch.")
    disk_least_mb: int = Field(
        200, ge=0, description="Free disk space below which a running command is ended."
    )
    log_mb: int = Field(
        10, ge=1, description="Output of a background process that is kept: the last of it."
    )
    keep_days: float = Field(
        7, gt=0, description="How long outcomes and logs of commands are kept in the home."
    )
