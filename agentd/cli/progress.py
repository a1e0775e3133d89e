"""One line on standard error that says how far a long work is. On a pipe: nothing."""

import contextlib
import sys
import time
from collections.abc import Generator

import click

from agentd.store.files import Progress, silent

_EVERY_S = 0.1


@contextlib.contextmanager
def shown_progress() -> Generator[Progress]:
    """What to call with each step; the line is gone after the block."""
    if not sys.stderr.isatty():
        yield silent
        return
    told_at = 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now - told_at >= _EVERY_S:
            told_at = now
            percent = f" {100 * done // total} %" if total else ""
            click.echo(f"\r\x1b[K{what}{percent}", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
