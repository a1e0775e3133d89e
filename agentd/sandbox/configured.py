"""Host commands and git, as the configuration says them."""

from pathlib import Path

from agentd.config import Config
from agentd.config_git import HostCommandConfig
from agentd.sandbox.git.git import GitSettings
from agentd.sandbox.host_commands import HostCommand, HostCommands, SshPlace
from agentd.sandbox.ssh import SshAccess


def git_settings(config: Config) -> GitSettings:
    git, home = config.git, config.home
    own = _path(git.known_hosts_path, home) if git.known_hosts_path else home / "known_hosts"
    # ssh takes ~ as the user's folder in the password file, whatever HOME says.
    known = (own, Path("~/.ssh/known_hosts"), Path("~/.ssh/known_hosts2"))
    key = _path(git.ssh_key_path, home) if git.ssh_key_path else None
    access = SshAccess(key, known, git.accept_new_hosts)
    return GitSettings(git.name, git.email, access, config.run_path / "git")


def host_commands(config: Config) -> HostCommands:
    made = [_host_command(each, config.home) for each in config.host_commands]
    return HostCommands(made, config.workspace_path)


def _host_command(given: HostCommandConfig, home: Path) -> HostCommand:
    ssh = given.ssh
    place = ssh and SshPlace(
        ssh.host,
        ssh.port,
        ssh.user,
        SshAccess(_path(ssh.key_path, home), [_path(ssh.known_hosts_path, home)]),
    )
    return HostCommand(given.argv, given.run or given.argv, given.timeout_seconds, place)


def _path(text: str, home: Path) -> Path:
    return home / Path(text).expanduser()
