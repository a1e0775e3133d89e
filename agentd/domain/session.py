"""A session: one conversation, an ordered journal of events."""

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.ids import SessionId


@dataclass(frozen=True, slots=True)
class Session(Capability):
    """`events` counts its journal; `last_event_at` is None while that is empty."""

    id: SessionId
    title: str | None
    events: int
    created_at: datetime
    last_event_at: datetime | None
