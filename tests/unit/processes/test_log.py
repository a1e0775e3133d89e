"""The log of a process: what is kept, and offsets that stay true."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.processes.log import ProcessLog


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(st.binary(max_size=90), max_size=30))
def test_what_is_read_is_what_was_written_and_the_end_is_kept(
    pieces: list[bytes], tmp_path_factory: object
) -> None:
    folder: Path = tmp_path_factory.mktemp("log")  # type: ignore[attr-defined] - pytest's own
    log, whole = ProcessLog(folder / "x.log", 40), b""
    for piece in pieces:
        log.append(piece)
        whole += piece
    part = log.read(0, 1000)
    assert part.end == len(whole)
    assert part.data == whole[part.start :]
    assert len(part.data) >= min(40, len(whole))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 50
    assert log.read(-7, 3).data == whole[-7:][:3]
    assert log.read(10_000, 5).data == b""
    assert ProcessLog(folder / "x.log", 40).read(part.start, 9).data == part.data[:9]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    log.remove()
    assert list(folder.iterdir()) == []
