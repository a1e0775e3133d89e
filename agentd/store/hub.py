"""The DuckDB side: one in-memory instance, into which the shared file is attached for a while.

Used from the engine's thread only. The file is opened by nothing else in this process: POSIX drops
its lock as soon as any descriptor of it closes.
"""

import contextlib
import os
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from agentd.domain.errors import StoreBusy, StoreError, StoreFailed, StoreUnusable
from agentd.store.file_lease import FileLease
from agentd.store.filesystem import refuse_network_filesystem

Row = dict[str, Any]
BLOCK_SIZE = 16384  # small writes: a sixth of the bytes per checkpoint of the default block
_SHORT_LOG = 16384  # bytes; the next process reads so much in 1 ms, a checkpoint takes 4 ms
# Each attach leaves up to 1 kB in the instance for good; a new one takes some 30 ms to make.
_RENEW_AFTER = 5000
# Statements here touch few rows, and planning one takes longer than running it. These of DuckDB's
# optimizers are worth their time; without the others planning takes a fifth less.
_OPTIMIZERS = [
    "build_side_probe_side",
    "column_lifetime",
    "deliminator",
    "filter_pushdown",
    "in_clause",
    "join_filter_pushdown",
    "late_materialization",
    "limit_pushdown",
    "row_group_pruner",
    "top_n",
    "unused_columns",
]


class Hub:
    """Holds the file while there is work; `admit` looks at the schema after every attach."""

    def __init__(
        self, path: Path, *, busy_s: float, admit: Callable[["Hub"], None] = lambda _: None
    ) -> None:
        self.path = path
        self.lease = FileLease(path)
        self.attached_at = 0.0
        self.in_transaction = False
        self.known_shape = ""  # of the tables, if whoever held the file before has left word of it
        self._left_as = ""  # what the file looked like when this process let go of it
        self._detached = 0  # how often, in the life of this instance
        self._begun = False  # a transaction begins with its first statement
        self._busy_s = busy_s
        self._admit = admit
        self._db: duckdb.DuckDBPyConnection | None = None
        self._checked_filesystem = False
        self._checkpoints = True
        self._log_path = path.with_name(path.name + ".wal")

    @property
    def attached(self) -> bool:
        return self.lease.held

    def attach(self) -> float:
        """Hold the file. Seconds waited for other processes. Raises StoreBusy, StoreUnusable."""
        if not self._checked_filesystem:
            refuse_network_filesystem(self.path)
            self._checked_filesystem = True
        waited = self.lease.acquire(self._busy_s)
        try:
            shape, _, state = self.lease.last_words.partition("@")
            self.known_shape = shape if state == self._file_state() else ""
            self._attach_file()
            self.attached_at = time.monotonic()
            self._admit(self)
        except BaseException:
            self.reset()
            raise
        return waited

    def detach(self) -> None:
        """Let go of the file; DuckDB checkpoints it on the way, unless somebody waits for it."""
        try:
            self._checkpoint_on_detach(not (self.lease.wanted() and self._log_bytes() < _SHORT_LOG))
            self._execute("USE memory")
            self._execute("DETACH agentd")
        except duckdb.Error as error:
            self.reset()
            raise translate(error, self.path) from error
        self._left_as = self._file_state()
        self.lease.release(f"{self.known_shape}@{self._left_as}")
        self._detached += 1
        if self._detached >= _RENEW_AFTER:
            self.reset()

    def untouched(self) -> bool:
        """Whether nobody has written the file since this process let go of it. Any thread."""
        return not self.attached and self._left_as == self._file_state()

    def begin(self) -> None:
        if not self.attached:
            self.attach()
        self.in_transaction = True
        self._begun = False

    def commit(self) -> None:
        self.in_transaction = False
        if not self._begun:
            return
        try:
            self.do("COMMIT")
        except StoreError:
            self.reset()  # what a failed commit leaves behind is not for use
            raise

    def rollback(self) -> None:
        if not self.in_transaction:
            return
        self.in_transaction = False
        if self._begun:
            with contextlib.suppress(StoreError):  # an aborted one is rolled back already
                self.do("ROLLBACK")

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        """Rows of one statement. Raises StoreError; after a fatal one the instance is new."""
        with self._translating():
            cursor = self._execute(sql, parameters)
            # None after a statement without rows; duckdb's types do not say so.
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def do(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        """A statement without rows: each call into DuckDB waits for the interpreter after it."""
        with self._translating():
            self._execute(sql, parameters)

    def reset(self) -> None:
        """Close the instance; the next attach opens a new one. Committed data stay."""
        self.in_transaction = False
        if self._db is not None:
            with contextlib.suppress(duckdb.Error):
                self._db.close()
            self._db = None
            self._checkpoints = True
            self._detached = 0
        self.lease.release()

    def close(self) -> None:
        if self.attached:
            with contextlib.suppress(StoreError):
                self.detach()
        self.reset()
        self.lease.close()

    def _checkpoint_on_detach(self, wanted: bool) -> None:
        if wanted != self._checkpoints:
            value = "enabled" if wanted else "disabled"
            self._execute(f"SET checkpoint_on_detach = '{value}'")
            self._checkpoints = wanted

    def _log_bytes(self) -> int:
        """The size of the write-ahead log: what a checkpoint would merge into the file."""
        try:
            return self._log_path.stat().st_size
        except FileNotFoundError:
            return 0

    def _file_state(self) -> str:
        """Another one as soon as anybody has written or replaced the file."""
        states: list[str] = []
        for path in (self.path, self._log_path):
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                states.append(f"{facts.st_ino} {facts.st_size} {facts.st_mtime_ns}")
        return " ".join(states)

    @contextlib.contextmanager
    def _translating(self) -> Generator[None]:
        try:
            yield
        except duckdb.Error as error:
            if _is_fatal(error):
                self.reset()
            raise translate(error, self.path) from error

    def _execute(
        self, sql: str, parameters: Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        if self._db is None:
            self._db = _new_instance()
        if self.in_transaction and not self._begun:
            self._begun = True
            sql = f"BEGIN TRANSACTION; {sql}"  # one call instead of two
        return self._db.execute(sql, parameters) if parameters else self._db.execute(sql)

    def _attach_file(self) -> None:
        new = not self.path.exists()
        quoted = str(self.path).replace("'", "''")
        options = f" (BLOCK_SIZE {BLOCK_SIZE})" if new else ""
        give_up = time.monotonic() + self._busy_s
        while True:
            try:
                self._execute(f"ATTACH '{quoted}' AS agentd{options}")
                self._execute("USE agentd")
                break
            except duckdb.Error as error:
                failure = translate(error, self.path)
                # Only a stranger (the duckdb shell, an editor) holds the file without our lease.
                if not isinstance(failure, StoreBusy) or time.monotonic() > give_up:
                    raise failure from error
                time.sleep(0.05)
        if new:
            os.chmod(self.path, 0o600)  # noqa: PTH101 - Path.chmod is the same; no descriptor opens


def _new_instance() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(":memory:", config={"threads": 1})
    db.execute("SET TimeZone = 'UTC'")
    known = db.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    unused = ",".join(name for (name,) in known if name not in _OPTIMIZERS)
    db.execute(f"SET disabled_optimizers = '{unused}'")
    return db


def _is_fatal(error: duckdb.Error) -> bool:
    return isinstance(error, duckdb.FatalException) or "has been invalidated" in str(error)


_MEANINGS: tuple[tuple[str, type[StoreError], str, str], ...] = (
    # text of the engine, our error, what happened, what to do
    (
        "No files found that match",
        StoreUnusable,
        "a file of the archive beside {path} is missing",
        "`agentd db check` names it; put it back from a copy of archive/.",
    ),
    (
        "Conflicting lock",
        StoreBusy,
        "another program has {path} open",
        "Close it (the PID is in the message below), then try again.",
    ),
    (
        "not a valid DuckDB database",
        StoreUnusable,
        "{path} is not an agentd database",
        "Move that file away, or name another home with --home.",
    ),
    (
        "newer version of DuckDB",
        StoreUnusable,
        "{path} was written by a newer DuckDB",
        "Install a newer agentd (pip install --upgrade agentd).",
    ),
    (
        "WAL",
        StoreUnusable,
        "the write-ahead log of {path} is damaged",
        (
            "Nothing was changed. Save what is not damaged: agentd db repair. Or restore a backup "
            "(agentd db restore), or move the .wal aside to go on without the newest writes."
        ),
    ),
    (
        "No space left",
        StoreFailed,
        "the disk of {path} is full",
        "Free some space; what was acknowledged is safe, this write was not stored.",
    ),
    (
        "File too large",
        StoreFailed,
        "{path} may not grow any more (a quota, or `ulimit -f`)",
        "Raise that limit; what was acknowledged is safe, this write was not stored.",
    ),
    (
        "Corrupt database file",
        StoreUnusable,
        "{path} is damaged",
        "Restore a backup (agentd db restore), or save what can be read: agentd db repair.",
    ),
    (
        "Could not read enough bytes",
        StoreUnusable,
        "{path} is damaged: a part of it is missing",
        "Restore a backup (agentd db restore), or save what can be read: agentd db repair.",
    ),
    (
        "Read-only file system",
        StoreUnusable,
        "{path} is on a read-only file system",
        "Mount it writable, or name another home with --home.",
    ),
    (
        "Permission denied",
        StoreUnusable,
        "this user may not open {path}",
        "Make the home belong to the user that runs agentd.",
    ),
)


def translate(error: duckdb.Error, path: Path) -> StoreError:
    """What an error of the engine means to a person; its own words stay at the end."""
    words = str(error).strip()
    for text, kind, message, hint in _MEANINGS:
        if text in words:
            said = message.format(path=path)
            return kind(f"{said}: {words}", hint=hint.format(path=path))
    if _is_fatal(error):
        return StoreFailed(
            f"the database engine failed on {path} and was restarted: {words}",
            hint="What was acknowledged is safe; whether this last write was stored is unknown.",
        )
    return StoreError(f"the database refused a statement: {words}")
