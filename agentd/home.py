"""A home: the folder of one installation."""

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from agentd.config import FILE_NAME
from agentd.config_text import template
from agentd.domain.errors import ConfigError

_FOLDERS = ("prompts", "skills", "tools", "workspace", "logs", "run")


def find_home(explicit: Path | None, environment: Mapping[str, str], cwd: Path) -> Path:
    """--home, else AGENTD_HOME, else `.agentd` in `cwd` or above, else the user's data folder."""
    if explicit is not None:
        return explicit.expanduser().absolute()
    if named := environment.get("AGENTD_HOME"):
        return Path(named).expanduser().absolute()
    for folder in (cwd, *cwd.parents):
        if (folder / ".agentd").is_dir():
            return folder / ".agentd"
    return platformdirs.user_data_path("agentd", appauthor=False)


def require_home(home: Path) -> Path:
    """`home`, if it is one. Raises ConfigError."""
    if not (home / FILE_NAME).is_file():
        raise ConfigError(
            f"there is no agentd home at {home}", hint=f"Make it: agentd --home {home} init"
        )
    return home


def make_home(home: Path) -> list[Path]:
    """Make a home, or complete one; what exists stays as it is. The paths that are new.

    Folders get mode 0700, files 0600. Raises ConfigError.
    """
    made: list[Path] = []
    try:
        for folder in (home, *(home / name for name in _FOLDERS)):
            if not folder.is_dir():
                folder.mkdir(parents=folder == home)
                made.append(folder)
            folder.chmod(0o700)
        for name, text in ((FILE_NAME, template()), ("mcp.json", '{"mcpServers": {}}\n')):
            path = home / name
            if not path.exists():
                path.touch(mode=0o600, exist_ok=False)
                path.write_text(text, encoding="utf-8")
                made.append(path)
            path.chmod(0o600)
    except OSError as error:
        raise ConfigError(
            f"can not make a home at {home}: {error.strerror}: {error.filename}",
            hint="Name another folder with --home.",
        ) from error
    return made
