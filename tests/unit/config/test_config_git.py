"""The settings of git and of host commands, and what becomes of them."""

from pathlib import Path

import pytest

from agentd.config import load_config
from agentd.config_text import explain
from agentd.domain.errors import ConfigError
from agentd.home import make_home
from agentd.sandbox.configured import git_settings, host_commands

_TWO = """
[[host_commands]]
argv = ["deploy", "--staging"]
timeout_seconds = 60

[[host_commands]]
argv = ["logs"]
run = ["journalctl", "-u", "shop"]
ssh = { host = "web1", user = "ops", key_path = "keys/ops", known_hosts_path = "keys/hosts" }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SSH_KEY_PATH", "KENOBOT_SSH_KEY"):
        monkeypatch.delenv(name, raising=False)
    make_home(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.requirement("S3-17")
@pytest.mark.parametrize(
    "variable", ["SSH_KEY_PATH", "KENOBOT_SSH_KEY", "AGENTD_GIT__SSH_KEY_PATH"]
)
def test_the_key_comes_from_the_variables_that_people_have(
    variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_settings(load_config(home)).access.key_path is None
    monkeypatch.setenv(variable, "/keys/id_ed25519")
    config = load_config(home)
    assert git_settings(config).access.key_path == Path("/keys/id_ed25519")
    assert config.sources == {"git.ssh_key_path": "environment"}


def test_strangers_among_hosts_are_not_trusted_until_somebody_says_so(home: Path) -> None:
    access = git_settings(load_config(home)).access
    assert not access.accept_new_hosts
    assert access.known_hosts[0] == home / "known_hosts"


@pytest.mark.requirement("S2-24")
def test_host_commands_are_tables(home: Path) -> None:
    (home / "agentd.toml").write_text(_TWO)
    config = load_config(home)
    found = host_commands(config)
    here, there = found.find("deploy --staging"), found.find("logs")
    assert here is not None
    assert there is not None
    assert (here.run, here.timeout_s, here.ssh) == (("deploy", "--staging"), 60, None)
    assert there.run == ("journalctl", "-u", "shop")
    assert there.ssh is not None
    assert (there.ssh.host, there.ssh.port, there.ssh.user) == ("web1", 22, "ops")
    assert there.ssh.access.key_path == home / "keys/ops"
    shown = next(each for each in explain(config) if each.key == "host_commands")
    assert [each["argv"] for each in shown.value] == [("deploy", "--staging"), ("logs",)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[host_commands]]\nargv = []", "host_commands.0.argv"),
        ("[[host_commands]]\nargv = ['x']\nshell = true", "host_commands.0.shell"),
        ("[[host_commands]]\nargv = ['x']\nssh = { host = '-oProxyCommand=x' }", "ssh.host"),
        ("[git]\nssh_key_path = 'a\"b'", "git.ssh_key_path"),
        ("[git]\nssh_key_path = '%h'", "git.ssh_key_path"),
        ("[git]\nemail = 'a <b>'", "git.email"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str, home: Path) -> None:
    (home / "agentd.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_config(home)
