"""`agentd sql`: ask the database."""

import contextlib
import csv
import json
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

import click

from agentd.cli.context import Context, json_option, pass_context
from agentd.cli.output import print_json, print_table
from agentd.config import Config
from agentd.daemon.wake import poke
from agentd.domain.news import News
from agentd.store.asking import Answer, answer, change, reading, the_statement

_INTERRUPT_S = 1.0


@click.command()
@click.argument("statement")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a line of names.")
@click.option("--write", is_flag=True, help="Let it change rows of the database itself.")
@json_option
@pass_context
def sql(context: Context, *, statement: str, as_csv: bool, write: bool, as_json: bool) -> None:
    """Ask the database with SQL; STATEMENT - is read from standard input.

    Reading works on a copy made for it: however long it takes, nobody waits, and no statement can
    change anything or reach another file. Tables and views: docs/data.md.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other.")
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise click.UsageError("STATEMENT is empty.")
    the_statement(text, write=write)
    config = context.config
    with _leaving_on_ctrl_c():
        found = _changed(config, text) if write else None
    if found is not None:
        _print(found, as_csv=as_csv, as_json=as_json)
        return
    with (
        _leaving_on_ctrl_c(),
        reading(
            config.database_path,
            folder=config.run_path,
            archive=config.archive_path,
            busy_s=config.store.busy_seconds,
        ) as instance,
    ):
        _print(answer(instance, text), as_csv=as_csv, as_json=as_json)


@contextlib.contextmanager
def _leaving_on_ctrl_c() -> Generator[None]:
    """DuckDB does not heed it in every operator: what has not ended by then is cut off.

    That is as harmless as a kill -9: reading works on a copy, and a change is one transaction.
    """
    listener, teller = socket.socketpair()
    teller.setblocking(False)

    def wait() -> None:
        while said := listener.recv(1):
            if said[0] == signal.SIGINT:
                time.sleep(_INTERRUPT_S)
                os._exit(130)

    before = signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)
    watching = threading.Thread(target=wait, daemon=True)
    watching.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        teller.close()
        watching.join()
        listener.close()


def _changed(config: Config, text: str) -> Answer:
    done = change(config.database_path, text, busy_s=config.store.busy_seconds)
    poke(config.run_path, News.SCHEDULES)  # whatever it was
    return done


def _print(found: Answer, *, as_csv: bool, as_json: bool) -> None:
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.names)
        writer.writerows([_text(value) for value in row] for row in found.rows)
    elif as_json:
        print_json(
            [
                {
                    name: _parsed(value, kind)
                    for name, value, kind in zip(found.names, row, found.types, strict=True)
                }
                for row in found.rows
            ]
        )
    else:
        print_table(found.names, [list(row) for row in found.rows], empty="No rows.")


def _parsed(value: Any, kind: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return json.loads(str(value)) if kind == "JSON" and value is not None else value


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if hasattr(value, "isoformat") else value
