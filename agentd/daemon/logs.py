"""How log lines look: for people on a terminal, JSON elsewhere. Secrets never reach a line."""

import logging
import re
import sys
from typing import Any, TextIO, cast

import structlog

from agentd.domain.redactor import Redactor

# Shapes of keys that are secret wherever they stand.
_SECRET = re.compile(r"(sk-[A-Za-z0-9_-]{8,}|Bearer\s+[A-Za-z0-9._-]{8,})")


def configure_logs(*, level: str, style: str, redactor: Redactor | None = None) -> None:
    """`style`: "pretty", "json", or "auto" (pretty on a terminal). Lines go to standard error.

    redactor: knows this installation's secrets.
    """
    known = redactor or Redactor()

    def without_secrets(_logger: object, _method: str, line: Any) -> str:
        # Of the finished line: a value may hold a secret at any depth, and so may a traceback.
        return _SECRET.sub("***", known.redact(line))

    pretty = style == "pretty" or (style == "auto" and sys.stderr.isatty())
    renderer: Any = (
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The prettier ones print local variables, and keys stand in those.
            exception_formatter=structlog.dev.plain_traceback,
        )
        if pretty
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    tracebacks = [] if pretty else [structlog.processors.format_exc_info]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *tracebacks,
            renderer,
            without_secrets,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _StandardError())),
        cache_logger_on_first_use=True,
    )


class _StandardError:
    """Whatever standard error is when a line is written."""

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()
