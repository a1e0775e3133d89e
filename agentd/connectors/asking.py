"""The answers of a person to what a server asks during one call, and the questions left open."""

from dataclasses import dataclass, field

from mcp_types import ElicitRequestParams, ElicitResult

from agentd.connectors.questions import Question, answer, answers, result_for
from agentd.domain.run import Run
from agentd.store.events import EventStore
from agentd.toolkit.result import ToolResult

_QUESTIONS_MOST = 20  # in one call: for each the journal is read


@dataclass(slots=True)
class Interview:
    """Of one call of `tool`. Outside a run nobody is asked."""

    server: str
    tool: str
    run: Run | None
    events: EventStore | None
    asked: int = 0
    _open: list[Question] = field(default_factory=list[Question])

    async def answer(self, asked: ElicitRequestParams) -> ElicitResult | None:
        """What the person said, or None; then the question is kept."""
        self.asked += 1
        if self.run is None or self.events is None or self.asked > _QUESTIONS_MOST:
            return None
        question = Question.of(self.server, asked)
        if question is None:
            return None
        journal = await self.events.of_session(self.run.session_id)
        own = [event for event in journal if event.task_id in (None, self.run.task_id)]
        said = answers(own, self.tool).get(question.key)
        found = None if said is None else answer(question, said)
        if isinstance(found, ElicitResult):
            return found
        self._open.append(
            Question(question.server, question.message, question.schema, question.url, found)
        )
        return None

    def outcome(self) -> ToolResult | None:
        """The result that lets the task wait, when something was asked and not answered."""
        return result_for(self._open, self.tool) if self._open else None
