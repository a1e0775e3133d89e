"""Where the programs of the model stand that wait for tools. The state is opaque, and sealed."""

from dataclasses import dataclass

from agentd.domain.clock import Clock
from agentd.domain.ids import SessionId
from agentd.store.connection import Transactor
from agentd.store.queries import load

_SQL = load("programs")


@dataclass(frozen=True, slots=True)
class ProgramKey:
    """Ids of calls come from the model's provider; with the reply that holds it one is unique."""

    session_id: SessionId
    reply_seq: int
    call_id: str

    def parts(self) -> tuple[str, ...]:
        return (self.session_id, str(self.reply_seq), self.call_id)


@dataclass(frozen=True, slots=True)
class KeptProgram:
    state: str
    seal: str


class ProgramStore:
    """Works on the store and inside an open transaction alike; the caller fences."""

    def __init__(self, db: Transactor, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def find(self, key: ProgramKey) -> KeptProgram | None:
        async with self._db.transaction() as conn:
            row = await conn.fetch_one(
                _SQL["find"],
                session_id=key.session_id,
                call_id=key.call_id,
                reply_seq=key.reply_seq,
            )
        return KeptProgram(row["state"], row["seal"]) if row else None

    async def keep(self, key: ProgramKey, kept: KeptProgram) -> None:
        async with self._db.transaction() as conn:
            await conn.execute(
                _SQL["keep"],
                session_id=key.session_id,
                call_id=key.call_id,
                reply_seq=key.reply_seq,
                state=kept.state,
                seal=kept.seal,
                now=self._clock.now(),
            )

    async def forget(self, session_id: SessionId) -> None:
        async with self._db.transaction() as conn:
            await conn.execute(_SQL["forget"], session_id=session_id)
