"""Ids are distinct types, so that a session's id can not be handed where a task's is meant."""

from typing import NewType

import uuid_utils

TaskId = NewType("TaskId", str)
SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
DaemonId = NewType("DaemonId", str)
ScheduleId = NewType("ScheduleId", str)
CallId = NewType("CallId", str)


def new_id() -> str:
    """A fresh UUIDv7 (RFC 9562) as text. Ids made later in one process sort later."""
    return str(uuid_utils.uuid7())
