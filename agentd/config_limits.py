"""The sections of the settings that keep a task from costing too much: [budget] and [guards]."""

from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from agentd.config_sections import ModelSpec, Section, TimeZone
from agentd.domain.budget import Amount, Scope, microusd


class GuardsConfig(Section):
    same_result: int = Field(
        3,
        ge=0,
        description="Equal calls with equal results in a row before the model is told; after as "
        "many again the task fails. 0 = never.",
    )
    same_call: int = Field(
        8, ge=0, description="The same for equal calls, or rounds of them, whose results differ."
    )
    alternation: int = Field(
        3, ge=0, description="The same for rounds of two to four calls: A-B-A-B-A-B are three."
    )
    errors: int = Field(6, ge=0, description="The same for failed calls, whatever they are.")


_USD = Annotated[float | None, Field(gt=0, le=1e9)]
_TOKENS = Annotated[int | None, Field(gt=0, le=1 << 53)]


class BudgetConfig(Section):
    task_usd: _USD = Field(None, description="Dollars that one task may cost; unset: no limit.")
    task_tokens: _TOKENS = Field(None, description="Tokens of all kinds that one task may take.")
    session_usd: _USD = Field(None, description="Dollars that one session may cost.")
    session_tokens: _TOKENS = Field(None, description="Tokens that one session may take.")
    schedule_usd: _USD = Field(None, description="Dollars that all tasks of a schedule may cost.")
    schedule_tokens: _TOKENS = Field(None, description="Tokens that they may take.")
    day_usd: _USD = Field(None, description="Dollars for one day, from midnight to midnight.")
    day_tokens: _TOKENS = Field(None, description="Tokens for one day.")
    total_usd: _USD = Field(None, description="Dollars for this installation, for ever.")
    total_tokens: _TOKENS = Field(None, description="Tokens for this installation, for ever.")
    timezone: TimeZone = Field(
        "UTC", description="Where the midnight of a day is, e.g. Europe/Berlin."
    )
    when_spent: Literal["wait", "fail", "cheaper"] = Field(
        "wait",
        description="What a task does whose next call would break a limit: wait for the next day "
        "or a person, fail, or go on with cheaper_model (and wait when that does not fit either).",
    )

    cheaper_model: ModelSpec | None = Field(
        None, description="The model to go on with when when_spent is cheaper."
    )

    @model_validator(mode="after")
    def _cheaper_is_named(self) -> Self:
        if self.when_spent == "cheaper" and self.cheaper_model is None:
            raise ValueError("when_spent is cheaper, so cheaper_model must name a model")
        return self

    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    def amounts(self) -> dict[Scope, Amount]:
        """The limits that are set, by what they are about."""
        found: dict[Scope, Amount] = {}
        for scope in Scope:
            usd: float | None = getattr(self, scope.key())
            tokens: int | None = getattr(self, scope.key(in_tokens=True))
            amount = Amount(None if usd is None else microusd(usd), tokens)
            if amount:
                found[scope] = amount
        return found
