"""What people run works on a branch as it does elsewhere, for root and for others."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.confined import needs_branches
from tests.unit.sandbox.test_branches import run

pytestmark = needs_branches


class TestPrograms:
    @pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
    async def test_git(self, tmp_path: Path) -> None:
        who = "git config user.name A; git config user.email a@b.c"
        await run(tmp_path, f"set -e; git init -q a; cd a; {who}; echo 1 > f; git add f")
        await run(tmp_path, "set -e; cd a; git commit -qm one; git checkout -qb side; echo 2 >> f")
        await run(
            tmp_path, "set -e; cd a; git commit -qam two; git checkout -q -; git merge -q side"
        )
        await run(tmp_path, "set -e; git clone -q --no-local a b; cd a; git gc -q; git mv f g")
        said = await run(tmp_path, "cd a; git fsck && git log --oneline | wc -l; cat ../b/f")
        assert said.splitlines()[-3:] == ["2", "1", "2"]

    @pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
    async def test_what_no_branch_can_do_is_done_without_one(self, tmp_path: Path) -> None:
        """A rename of a folder, and a link whose number is looked at, as git does both."""
        who = "git config user.name A; git config user.email a@b.c"
        make = f"git init -q a; cd a; {who}; mkdir d; echo 1 > d/f; git add .; git commit -qm one"
        await run(tmp_path, f"set -e; {make}")
        await run(tmp_path, "set -e; echo x >> once; git clone -q a b; git -C a mv d e")
        assert (tmp_path / "workspace" / "a" / "e" / "f").read_text() == "1\n"
        assert (tmp_path / "workspace" / "b" / "d" / "f").read_text() == "1\n"
        assert (tmp_path / "workspace" / "once").read_text() == "x\n"

    async def test_tar_and_copies(self, tmp_path: Path) -> None:
        await run(
            tmp_path,
            "mkdir -p a/b; echo 1 > a/b/c; ln -s b a/l; chmod 640 a/b/c; touch -d @9 a/b/c",
        )
        await run(tmp_path, "cp -a a copy; tar cf t.tar a; mkdir x; tar xf t.tar -C x; mv a/b a/d")
        workspace = tmp_path / "workspace"
        for name in ("copy/b/c", "x/a/b/c", "a/d/c"):
            found = (workspace / name).stat()
            assert (stat.S_IMODE(found.st_mode), found.st_mtime) == (0o640, 9)
        assert (workspace / "copy" / "l").is_symlink()

    @pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="there is no python3")
    async def test_python_and_sqlite(self, tmp_path: Path) -> None:
        await run(tmp_path, "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'print(1)'")
        base = "import sqlite3; c = sqlite3.connect('x.db'); "
        made = base + "c.execute('PRAGMA journal_mode=wal'); c.execute('CREATE TABLE t (a)')"
        await run(tmp_path, f'/usr/bin/python3 -c "{made}"')
        filled = base + "c.execute('INSERT INTO t VALUES (7)'); c.commit()"
        await run(
            tmp_path, f'/usr/bin/python3 -c "{filled}"; v/bin/python -c "import this" | wc -l'
        )
        with sqlite3.connect(tmp_path / "workspace" / "x.db") as db:
            assert db.execute("SELECT a FROM t").fetchall() == [(7,)]
        db.close()

    @pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
    async def test_make(self, tmp_path: Path) -> None:
        text = "all: b\\nb: a\\n\\tcp a b\\n"
        await run(tmp_path, f"printf '{text}' > Makefile; echo 1 > a; make -s")
        assert await run(tmp_path, "make -q && echo up to date") == "up to date\n"


_AS_NOBODY = """
import anyio, sys
from pathlib import Path
from tests.unit.sandbox.test_branches import EVERYTHING, EXPECTED, KEY, fill, make_branches, tree
from tests.confined import shell

async def main():
    path = Path(sys.argv[1])
    branches = make_branches(path)
    fill(path / "workspace")
    done = await branches.run(KEY, shell(EVERYTHING + "mkdir -m 0 shut; id -u"))
    assert done.exit_code == 0, done
    assert done.output == "65534\\n", done
    assert (await branches.run(KEY, shell("rmdir shut locked; mkdir locked"))).exit_code == 0
    assert tree(path / "workspace") == EXPECTED
    print("as an ordinary user")

anyio.run(main)
"""


def _python_for_nobody() -> str | None:
    """An interpreter that an ordinary user can run, with what this one has."""
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            asked = subprocess.run(
                [python, "-c", "import anyio, structlog, pytest"], check=False, **_NOBODY
            )
            if asked.returncode == 0:
                return python
    return None


_NOBODY: dict[str, Any] = {
    "env": {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    },
    "user": 65534,
    "group": 65534,
    "extra_groups": [],
    "capture_output": True,
    "text": True,
    "timeout": 15,
}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_the_same_as_an_ordinary_user() -> None:
    python = _python_for_nobody()
    if python is None:
        pytest.skip("an ordinary user can run no Python that has our packages")
    folder = Path(f"/tmp/agentd-nobody-{os.getpid()}")
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    try:
        done = subprocess.run([python, "-c", _AS_NOBODY, str(folder)], check=False, **_NOBODY)
        assert done.stdout == "as an ordinary user\n", done.stderr
    finally:
        shutil.rmtree(folder)
