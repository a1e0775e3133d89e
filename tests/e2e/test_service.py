"""`agentd run` under a service manager: the notify protocol, the unit file, the health check."""

import fcntl
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from tests.processes import Home, new_home

_ROOT = Path(__file__).parents[2]
_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "Done." }\n'
_SLOW = '[[turn]]\ndelay_s = 60\n[[turn.call]]\ntool = "complete_task"\n'
_MOST_EXPOSED = 30  # tenths of the exposure level of systemd; below 50 it says OK


class Manager:
    """What systemd hears at its end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.socket.setblocking(False)

    async def hears(self, wanted: str, within_s: float = 10) -> list[str]:
        """What comes until a message that starts so, with it."""
        heard: list[str] = []
        with anyio.fail_after(within_s):
            while not (heard and heard[-1].startswith(wanted)):
                await anyio.wait_readable(self.socket)
                heard.append(self.socket.recv(4096).decode())
        return heard

    def drain(self) -> list[str]:
        heard: list[str] = []
        try:
            while True:
                heard.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return heard


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify")
    with closing(made.socket):
        yield made


def _home(path: Path, manager: Manager | None, script: str = _DONE, **variables: str) -> Home:
    (path / "script.toml").write_text(script)
    home = new_home(path, AGENT__MODEL=f"scripted:{path / 'script.toml'}", **variables)
    given = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "200000"} if manager else {}
    return Home(home.path, {**home.variables, **given})


async def test_systemd_hears_of_ready_of_life_and_of_the_stop(
    tmp_path: Path, manager: Manager
) -> None:
    home = _home(tmp_path, manager, WATCHDOG__FIRST_SECONDS="0")
    async with home.daemon() as daemon:
        assert await manager.hears("READY=1") == ["READY=1"]
        # What is ready can claim: nobody waits for a poll, a restart or a second look.
        task_id = await home.enqueue("Do it.")
        await daemon.logged("run ended by a terminal tool")
        assert (await home.task(task_id))["state"] == "completed"
        assert "WATCHDOG=1" in await manager.hears("STATUS=working")
        daemon.signal(signal.SIGTERM)
        await manager.hears("STOPPING=1")
        assert await daemon.ended() == 0


async def test_ready_is_not_said_while_another_process_keeps_the_database(
    tmp_path: Path, manager: Manager
) -> None:
    home = _home(tmp_path, manager)
    assert (await home.run("task", "list")).code == 0
    with (home.path / "agentd.duckdb.lease").open("ab") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        process = await anyio.open_process(
            home.command("run"), env=home.environment, stderr=subprocess.DEVNULL
        )
        try:
            with anyio.fail_after(10):
                while not _is_waited_for(home.path):  # noqa: ASYNC110 - a lock of another process
                    await anyio.sleep(0.01)
            assert manager.drain() == []
            fcntl.flock(lease, fcntl.LOCK_UN)
            assert await manager.hears("READY=1") == ["READY=1"]
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()


async def test_pings_cease_while_the_loop_hangs(tmp_path: Path, manager: Manager) -> None:
    home = _home(tmp_path, manager)
    async with home.daemon() as daemon:
        await manager.hears("WATCHDOG=1")
        daemon.signal(signal.SIGSTOP)
        _until_stopped(daemon.pid)
        manager.drain()
        await anyio.sleep(0.5)  # five pings long
        assert manager.drain() == []
        daemon.signal(signal.SIGCONT)
        await manager.hears("WATCHDOG=1")


async def test_pings_cease_when_memory_is_beyond_its_bound(
    tmp_path: Path, manager: Manager
) -> None:
    home = _home(
        tmp_path,
        manager,
        WATCHDOG__FIRST_SECONDS="0.5",
        WATCHDOG__MEMORY_FAIL_MB="1",
        WATCHDOG__MEMORY_WARN_MB="1",
    )
    async with home.daemon() as daemon:
        await manager.hears("WATCHDOG=1")  # nobody has looked yet
        line = await daemon.logged("watchdog")
        assert (line["check"], line["state"]) == ("memory", "fail")
        await manager.hears("STATUS=memory:")
        manager.drain()
        await anyio.sleep(0.5)
        assert manager.drain() == []
        done = await home.run("health")
        assert done.code == 1
        assert "memory" in done.out


async def test_a_daemon_that_drains_still_says_that_it_lives(
    tmp_path: Path, manager: Manager
) -> None:
    home = _home(tmp_path, manager, _SLOW, DAEMON__DRAIN_SECONDS="3")
    async with home.daemon() as daemon:
        await home.enqueue("Long.")
        await daemon.logged("run started")
        daemon.signal(signal.SIGTERM)
        await manager.hears("STOPPING=1")
        await manager.hears("WATCHDOG=1")
        assert await daemon.ended() == 0


async def test_what_a_daemon_starts_does_not_hear_of_systemd(
    tmp_path: Path, manager: Manager
) -> None:
    home = _home(tmp_path, manager, '[[turn]]\n[[turn.call]]\ntool = "variables"\n')
    (home.path / "tools" / "variables.py").write_text(
        "import os\nfrom agentd.toolkit.definition import tool\n"
        '@tool(group="probe", effect="read")\n'
        "def variables() -> list[str]:\n"
        '    """The names."""\n'
        "    return sorted(os.environ)\n"
    )
    async with home.daemon() as daemon:
        task_id = await home.enqueue("Look.")
        await daemon.logged("run ended")  # the script has no second turn
    history = await home.run("session", "history", task_id, "--json")
    assert "AGENTD_HOME" in history.out
    assert "NOTIFY_SOCKET" not in history.out
    assert "WATCHDOG_USEC" not in history.out


async def test_health_and_diagnostics_of_a_real_daemon(tmp_path: Path) -> None:
    home = _home(tmp_path, None, WATCHDOG__FIRST_SECONDS="0")
    assert (await home.run("health")).code == 1
    async with home.daemon() as daemon:
        with anyio.fail_after(10):
            while (await home.run("health")).code != 0:  # noqa: ASYNC110 - another process
                await anyio.sleep(0.05)
        done = await home.run("diagnostics", "--json")
        (found,) = json.loads(done.out)["daemons"]
        memory = next(c for c in found["health"]["checks"] if c["name"] == "memory")
        assert (done.code, found["health"]["pid"]) == (0, daemon.pid)
        assert 20 < memory["value"] < 256
        daemon.signal(signal.SIGKILL)
        await daemon.ended()
        assert (await home.run("health")).code == 1
    assert (await home.run("run", "--drain")).code == 0
    assert not list((home.path / "run").iterdir())  # of the dead daemon nothing stays


def _is_waited_for(home: Path) -> bool:
    """Whether a process stands in line for the database."""
    with (home / "agentd.duckdb.turn").open("ab") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        pass


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=15)


@needs_systemd
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "agentd.service"
    text = (_ROOT / "config/agentd.service").read_text()
    unit.write_text(text.replace("/opt/agentd/bin/agentd", "/bin/true"))  # it looks for the file
    done = _analyze("verify", "--recursive-errors=no", "--man=no", str(unit))
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_the_unit_is_hardened() -> None:
    unit = str(_ROOT / "config/agentd.service")
    done = _analyze("security", "--offline=true", f"--threshold={_MOST_EXPOSED}", unit)
    assert done.returncode == 0, done.stdout


def test_the_unit_lets_commands_be_confined() -> None:
    """What bwrap needs, by strace; what masks /proc keeps it from a /proc of its own."""
    unit = (_ROOT / "config/agentd.service").read_text().splitlines()
    lines = [line for line in unit if not line.startswith("#")]
    masks = ("ProtectProc", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectHostname")
    assert not [line for line in lines if line.startswith(masks)]
    assert "RestrictNamespaces=user pid net mnt ipc uts cgroup" in lines
    assert any(
        line.startswith("RestrictAddressFamilies=") and "AF_NETLINK" in line for line in lines
    )
    filters = [line for line in lines if line.startswith("SystemCallFilter=")]
    assert filters[-1] == "SystemCallFilter=mount umount2 pivot_root sethostname capset"


def test_the_unit_leaves_more_time_than_the_daemon_takes_to_drain() -> None:
    unit = _settings(_ROOT / "config/agentd.service")
    assert unit["Type"] == "notify"
    assert int(unit["TimeoutStopSec"]) > 30 + 10  # daemon.drain_seconds, and what comes after
    assert int(unit["WatchdogSec"]) >= 60
    environment = unit["EnvironmentFile"]
    assert environment == "-/etc/agentd/agentd.env"


def test_the_example_of_the_environment_holds_nothing_in_force() -> None:
    lines = (_ROOT / "config/agentd.env.example").read_text().splitlines()
    kept = [line for line in lines if line and not line.startswith("#")]
    assert kept == []
    named = [line.removeprefix("# ") for line in lines if "=" in line]
    assert "ANTHROPIC_API_KEY=" in named


def _settings(unit: Path) -> dict[str, str]:
    pairs = [line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line]
    return {name: value for name, value in pairs if not name.startswith("#")}
