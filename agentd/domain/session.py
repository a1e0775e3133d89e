"""A session: one conversation, an ordered journal of events."""

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.capability import Capability
from agentd.domain.ids import SessionId


@dataclass(frozen=True, slots=True)
class Session(Capability):
    """`last_seq` is the sequence number of its newest event, 0 while it has none."""

    id: SessionId
    title: str | None
    last_seq: int
    created_at: datetime
    updated_at: datetime
