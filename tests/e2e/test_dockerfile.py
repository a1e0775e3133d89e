"""The Dockerfile: its lines carried out in a clean environment, then the container's life."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import anyio
import pytest

from tests.dockerfile import Builder, Instruction, ignored, read

_ROOT = Path(__file__).parents[2]
_INSTALL = "/opt/agentd/bin/pip install --no-cache-dir --require-hashes -r requirements.lock"
# Downloads 60 packages: the release does that once, in the image itself and here.
_DOWNLOAD = os.environ.get("TEST_DOWNLOAD") == "1"
_LINK = """
import pathlib, sysconfig
(pathlib.Path(sysconfig.get_path("purelib")) / "lock.pth").write_text({packages!r})
"""


def _one(stage: list[Instruction], name: str) -> Instruction:
    (found,) = [each for each in stage if each.name == name]
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Both stages. The packages of the lock come from this environment, or from the network."""
    root = tmp_path_factory.mktemp("image")
    packages = sysconfig.get_path("purelib")
    link = [f"{root}/opt/agentd/bin/python", "-c", _LINK.format(packages=packages)]
    python = Path(sys.base_prefix) / "bin"  # `python` as in the image: no virtual environment
    builder = Builder(
        context=_ROOT,
        root=root,
        environment={"PATH": f"{python}:/usr/bin:/bin", "HOME": str(root)},
        replaced={} if _DOWNLOAD else {_INSTALL: link},
    )
    build, final = read(_ROOT / "Dockerfile")
    builder.build(build)
    shutil.rmtree(root / "src")  # the second stage has no sources
    (root / "var/lib").mkdir(parents=True)
    builder.build(final)
    return builder


@pytest.mark.timeout(300 if _DOWNLOAD else 60)
def test_what_is_installed_is_agentd_and_not_this_checkout(image: Builder) -> None:
    assert _INSTALL in image.ran
    where = "import agentd, os; print(os.path.dirname(agentd.__file__))"
    done = subprocess.run(
        [image.root / "opt/agentd/bin/python", "-c", where],
        cwd=image.root,
        env=image.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(image.root / "opt/agentd/lib"))


@pytest.mark.timeout(300 if _DOWNLOAD else 60)
async def test_the_container_starts_gets_well_and_stops_at_its_signal(image: Builder) -> None:
    _, final = read(_ROOT / "Dockerfile")
    words = [*_one(final, "ENTRYPOINT").words, *_one(final, "CMD").words]
    check = _one(final, "HEALTHCHECK").words
    assert check == ["agentd", "health"]
    script = image.root / "done.toml"
    script.write_text('[[turn]]\n[[turn.call]]\ntool = "complete_task"\n')
    given = {"AGENTD_AGENT__MODEL": f"scripted:{script}", "AGENTD_WATCHDOG__FIRST_SECONDS": "0"}
    environment = {**image.environment, **given}
    assert environment["AGENTD_HOME"] == str(image.root / "var/lib/agentd")
    home = image.place("/var/lib/agentd")

    async def healthy() -> bool:
        done = await anyio.run_process(check, env=environment, cwd=home, check=False)
        return done.returncode == 0

    process = await anyio.open_process(words, env=environment, cwd=home, stderr=subprocess.DEVNULL)
    try:
        with anyio.fail_after(15):
            while not await healthy():
                assert process.returncode is None
        (signal,) = _one(final, "STOPSIGNAL").words
        await anyio.run_process(["kill", f"-{signal.removeprefix('SIG')}", str(process.pid)])
        with anyio.fail_after(15):
            assert await process.wait() == 0
        assert not await healthy()
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
    assert (home / "agentd.duckdb").exists()


def test_it_is_slim_not_root_and_keeps_its_data_in_a_volume() -> None:
    build, final = read(_ROOT / "Dockerfile")
    assert {build[0].words[0], final[0].words[0]} == {"python:3.11-slim"}
    assert _one(final, "USER").text == "agentd"
    assert _one(final, "VOLUME").text == "/var/lib/agentd"
    assert _one(final, "STOPSIGNAL").text == "SIGTERM"
    assert [each.flags.get("from") for each in final if each.name == "COPY"] == ["build"]
    runs = [each.text for each in build if each.name == "RUN"]
    for line in runs[1:]:
        assert "--require-hashes" in line or "--no-index" in line  # nothing that no lock knows


def test_the_healthcheck_waits_for_the_first_look() -> None:
    _, final = read(_ROOT / "Dockerfile")
    start_s = int(_one(final, "HEALTHCHECK").flags["start-period"].removesuffix("s"))
    assert start_s > 5  # watchdog.first_seconds


def test_the_builder_gets_only_what_it_copies() -> None:
    text = (_ROOT / ".dockerignore").read_text()
    patterns = [line for line in text.splitlines() if line and not line.startswith("#")]
    for kept in ("agentd/app.py", "requirements.lock", "pyproject.toml", "README.md"):
        assert not ignored(kept, patterns), kept
    for left_out in (".git/config", "tests/desk.py", ".env", "agentd/__pycache__/app.pyc"):
        assert ignored(left_out, patterns), left_out
