"""What becomes of the calls that a crash cut off, by the effect that their tool promised."""

from dataclasses import dataclass

from agentd.agent.dispatch import Call, Dispatch
from agentd.agent.journal import CallJournal
from agentd.toolkit.call import reconcile
from agentd.toolkit.definition import Effect
from agentd.toolkit.inject import CallContext
from agentd.toolkit.result import ToolResult

_UNKNOWN = (
    "The daemon stopped while {tool} was being carried out. Whether it took effect is unknown; it "
    "was not repeated."
)
_UNKNOWN_HINT = (
    "Find out whether it happened (look at what it would have changed) before repeating it."
)


@dataclass(frozen=True, slots=True)
class Resume:
    """Answers what can be answered without repeating an effect; leaves the rest to be run."""

    journal: CallJournal
    dispatch: Dispatch

    async def settle(self, calls: list[Call]) -> list[Call]:
        """Those of `calls` that may be carried out (again); the others have a result now."""
        begun = self.journal.begun()
        to_run: list[Call] = []
        for call in calls:
            result = await self._outcome(call, begun[call.id]) if call.id in begun else None
            if result is None:
                to_run.append(call)
            else:
                await self.dispatch.answer(call, result)
        return to_run

    async def _outcome(self, call: Call, promised: str) -> ToolResult | None:
        """The result of a call that had begun; None: it may be run again without harm.

        `promised`: its effect when it began. A server may call its tools something else by now.
        """
        effect = Effect.EXTERNAL if promised == Effect.EXTERNAL else call.effect
        match effect:
            case Effect.READ | Effect.IDEMPOTENT | Effect.TRANSACTIONAL:
                return None
            case Effect.RECONCILABLE:
                assert call.tool is not None
                context = CallContext(self.dispatch.store, self.journal.run, call.id)
                return await reconcile(call.tool, call.arguments, self.dispatch.injector, context)
            case Effect.EXTERNAL:
                return ToolResult.failure(
                    "outcome_unknown",
                    _UNKNOWN.format(tool=call.name),
                    next_action_hint=_UNKNOWN_HINT,
                )
