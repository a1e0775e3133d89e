"""A watchdog with bounds that a machine under load does not reach; and what a module logs."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import structlog

from agentd.daemon.checks import Bounds
from agentd.daemon.watchdog import Sources, Watchdog
from agentd.domain.clock import SystemClock
from agentd.store.store import Store

WIDE = Bounds(
    memory_warn_mb=100_000,
    memory_fail_mb=200_000,
    lag_warn_s=60,
    lag_fail_s=120,
    disk_least_mb=0,
    database_warn_s=5,
    database_fail_s=10,
)


def make_watchdog(
    home: Path, store: Store, bounds: Bounds = WIDE, interval_s: float = 60, **more: Any
) -> Watchdog:
    (home / "run").mkdir(exist_ok=True)
    facts = {
        "home": home,
        "run_directory": home / "run",
        "ask_database": store.ping,
        "untouched": store.untouched,
        "breaker_states": dict[str, str],
        "clock": SystemClock(),
    }
    sources = Sources(**{name: more.pop(name, default) for name, default in facts.items()})
    return Watchdog(sources, bounds, interval_s=interval_s, first_s=0, **more)


def capture(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[Any]:
    """What a module logs from now on, whatever another test has configured."""
    captured = structlog.testing.LogCapture()
    logger = structlog.wrap_logger(
        None, processors=[captured], wrapper_class=structlog.make_filtering_bound_logger(0)
    )
    monkeypatch.setattr(module, "_log", logger)
    return captured.entries
