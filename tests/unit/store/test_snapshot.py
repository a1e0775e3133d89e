"""Private copies: what of them is left behind by a kill is removed, and nothing else."""

import resource
import subprocess
import sys
from pathlib import Path

from agentd.domain.ids import new_id
from agentd.store.snapshot import private_folder

_COPY = """
import resource, signal, sys
from pathlib import Path
from agentd.store.files import copy
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
try:
    copy(Path(sys.argv[1]), Path(sys.argv[2]))
except OSError as error:
    print(error.strerror)
"""


def test_folders_of_other_people_stay(tmp_path: Path) -> None:
    for name in ("copy-of-my-photos", "new-year", ".agentd-copy-of-mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jpg").write_text("x")
    (tmp_path / f".agentd-copy-{new_id()}").mkdir()  # of a process that was killed
    with private_folder(tmp_path) as folder:
        assert folder.is_dir()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"copy-of-my-photos", "new-year", ".agentd-copy-of-mine"}


def test_a_copy_that_does_not_fit_is_an_error_and_not_shorter(tmp_path: Path) -> None:
    assert resource.RLIM_INFINITY == -1
    source = tmp_path / "a.duckdb"
    source.write_bytes(bytes(3_000_000))
    done = subprocess.run(
        [sys.executable, "-c", _COPY, str(source), str(tmp_path / "b.duckdb")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "File too large"
