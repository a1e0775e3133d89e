"""The ledger as the runs of one process see it: those that ask together are answered together."""

from dataclasses import dataclass, field

import anyio

from agentd.domain.capability import Capability
from agentd.domain.errors import RunLost
from agentd.store.budgets import Asked, BudgetStore, Shortage

_TOGETHER_MOST = 64


@dataclass(eq=False, slots=True)
class _Question:
    asked: Asked
    is_answered: bool = False
    answer: Shortage | RunLost | None = None


@dataclass(slots=True)
class Ledger(Capability):
    """One transaction for all who ask while another one is under way: 1,000 at once are 16."""

    store: BudgetStore
    _waiting: list[_Question] = field(default_factory=list[_Question])
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def reserve(self, asked: Asked) -> Shortage | None:
        """As `BudgetStore.reserve` for one call. Raises RunLost.

        Who is cancelled meanwhile may leave a reservation behind; it is charged with the others of
        runs that are over.
        """
        question = _Question(asked)
        self._waiting.append(question)
        try:
            async with self._turn:
                if not question.is_answered:
                    await self._answer(question)
            if isinstance(question.answer, RunLost):
                raise question.answer
            return question.answer
        finally:
            if question in self._waiting:
                self._waiting.remove(question)

    async def _answer(self, first: _Question) -> None:
        """For `first` and those that wait behind it; when it fails, they ask themselves."""
        others = [each for each in self._waiting if each is not first]
        together = [first, *others[: _TOGETHER_MOST - 1]]
        # Before the question: who is cancelled during it takes itself out, too.
        self._waiting = [each for each in self._waiting if each not in together]
        answers = await self.store.reserve([each.asked for each in together])
        for question, answer in zip(together, answers, strict=True):
            question.is_answered, question.answer = True, answer
