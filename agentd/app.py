"""The composition root: the one file that knows every concrete class.

It loads the whole agent, so the command line imports it only where it runs one or calls a tool.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import anyio
import structlog

from agentd.agent.asking import Asking
from agentd.agent.budget import Budget, Rules
from agentd.agent.dispatch import Dispatch
from agentd.agent.failover import Candidate, Failover
from agentd.agent.guards import Bounds as GuardBounds
from agentd.agent.journal import Journal
from agentd.agent.ledger import Ledger
from agentd.agent.loop import Bounds, Loop
from agentd.agent.opening import Opening
from agentd.agent.programs import Programs
from agentd.agent.prompt import system_prompt
from agentd.agent.results import Bounds as ResultBounds
from agentd.agent.results import ResultLayer
from agentd.agent.spent import wake_where_limits_changed, with_own
from agentd.app_tools import Toolbox, make_toolbox
from agentd.config import Config
from agentd.daemon.checks import Bounds as HealthBounds
from agentd.daemon.daemon import Daemon, DaemonSettings
from agentd.daemon.gate import Gate
from agentd.daemon.notify import Notifier
from agentd.daemon.retention import Retention
from agentd.daemon.scheduler import Scheduler
from agentd.daemon.supervisor import Until
from agentd.daemon.watchdog import Sources, Watchdog
from agentd.daemon.worker import Assignment, Worker
from agentd.domain.backoff import Attempts, Terms
from agentd.domain.budget import Amount
from agentd.domain.clock import Clock, SystemClock
from agentd.domain.ids import DaemonId
from agentd.known_secrets import unreadable_files
from agentd.models.breaker import Breakers
from agentd.models.model import Model
from agentd.models.prices import PriceList
from agentd.models.retrying import Backoff
from agentd.models.select import ProviderSettings, open_model
from agentd.sandbox.code.program import Interpreter
from agentd.sandbox.code.program import Limits as CodeLimits
from agentd.sandbox.code.python import PythonCode
from agentd.sandbox.code.seal import Seal
from agentd.sandbox.code.typescript import TypeScriptCode, find_deno
from agentd.store.archives import ArchiveStore
from agentd.store.budgets import BudgetStore
from agentd.store.daemons import DaemonStore
from agentd.store.leases import LeaseStore
from agentd.store.runs import RunStore
from agentd.store.schedules import ScheduleStore
from agentd.store.store import Store
from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.inject import CallContext

_log = structlog.get_logger()
# Python's 5 ms would let each statement of the database thread wait for a burst of the loop.
_SWITCH_S = 0.001


@dataclass
class LoopFactory:
    """Makes the loop of one assignment; models and the tools' schemas are shared by all."""

    config: Config
    store: Store
    clock: Clock
    toolbox: Toolbox
    models: dict[str, Model] = field(default_factory=dict[str, Model])

    def __post_init__(self) -> None:
        self._tools: tuple[int, list[dict[str, object]]] = (-1, [])
        system = system_prompt(self.config.workspace_path, self.config.prompts_path)
        self._system = self.store.redactor.redact(system)
        self.breakers = _breakers(self.config, self.clock)
        self._price = PriceList(self.config.models.own_prices())
        self._ledger = Ledger(BudgetStore(self.store, self.clock))
        self._rules = _budget_rules(self.config, self.model)
        self.python = PythonCode(processes=self.config.daemon.concurrency)
        settled = self.toolbox.runners.servers.settled
        self.programs = _programs(self.config, self.python, settled)

    def __call__(self, assignment: Assignment) -> Loop:
        config, task = self.config, assignment.claim.task
        result_bounds = ResultBounds(**config.results.model_dump())
        journal = Journal(assignment.claim.run, self.store, self.clock, self.store.redactor)
        limits = task.limits
        iterations = limits.max_tool_iterations
        return Loop(
            journal=journal,
            opening=Opening(journal, assignment.claim),
            asking=Asking(
                failover=self._failover(task.model or config.agent.model),
                journal=journal,
                price=self._price,
                breaker_of=self.breakers.of,
                budget=Budget(
                    journal=journal,
                    ledger=self._ledger,
                    rules=self._rules,
                    amounts=with_own(
                        self._rules.amounts,
                        Amount(limits.max_cost_microusd, limits.max_total_tokens),
                    ),
                    price=self._price,
                    stopping=assignment.stopping,
                    schedule_id=task.schedule_id,
                ),
                stopping=assignment.stopping,
            ),
            dispatch=Dispatch(
                journal=journal,
                store=self.store,
                registry=self.toolbox.registry,
                injector=self.toolbox.injector,
                stopping=assignment.stopping,
                results=ResultLayer(journal, result_bounds, self.store.redactor),
                routes={"execute_code": self.programs},
            ),
            bounds=Bounds(
                config.agent.max_tool_iterations if iterations is None else iterations,
                config.agent.max_tokens,
                limits.deadline_s or config.agent.deadline_seconds,
                config.agent.max_reminders,
                config.agent.max_wait_days * 86_400,
            ),
            guards=GuardBounds(**config.guards.model_dump()),
            system=self._system,
            tools=self._model_tools(),
            strings=assignment,
        )

    def _model_tools(self) -> list[dict[str, object]]:
        """The tools as they are now. A run keeps what it began with: providers cache that."""
        registry = self.toolbox.registry
        if self._tools[0] != registry.version:
            tools = registry.definitions("worker")
            if not self.toolbox.runners.servers.servers:  # nothing to be found through them
                tools = [each for each in tools if each.group != "mcp"]
            self._tools = registry.version, to_anthropic(tools)
        return self._tools[1]

    def _failover(self, spec: str) -> Failover:
        """The model of a task, and the one that is asked instead of it."""
        specs = dict.fromkeys([spec, self.config.models.fallback or spec])
        candidates = [Candidate(self.model(each), self.breakers.of(each)) for each in specs]
        return Failover(candidates, _patience(self.config))

    def breaker_states(self) -> dict[str, str]:
        """How each provider's circuit breaker stands."""
        return {each.provider: str(each.state) for each in self.breakers.states()}

    def model(self, spec: str) -> Model:
        """Opened once for each name. Raises ConfigError."""
        if spec not in self.models:
            self.models[spec] = open_model(spec, _provider_settings(self.config))
        return self.models[spec]


async def serve(config: Config, store: Store, until: Until) -> int:
    """`agentd run`, until a signal or `until`. The number of tasks that were claimed."""
    sys.setswitchinterval(_SWITCH_S)
    clock = SystemClock()
    toolbox = make_toolbox(config, store)
    for path in unreadable_files(config):
        _log.warning(
            "a file of secrets can not be read, so nothing of it is hidden", file=str(path)
        )
    for problem in toolbox.problems:
        _log.error("a tool could not be loaded", error=problem.message, hint=problem.hint)
    context = CallContext(store)
    await toolbox.registry.start(toolbox.injector, context)
    factory = LoopFactory(config, store, clock, toolbox)
    try:
        if abandoned := await BudgetStore(store, clock).charge_abandoned():
            _log.warning("model calls that never came back are counted in full", calls=abandoned)
        if woken := await wake_where_limits_changed(store, clock, config.budget.amounts()):
            _log.info("tasks try again: the limit they waited for has changed", tasks=woken)
        # Their SDKs take a second to load: not while the first task waits for it.
        for spec in filter(None, (config.agent.model, config.models.fallback)):
            factory.model(spec)
        async with toolbox.runners.servers.open(), toolbox.runners.processes.serve():
            return await _daemon(config, store, clock, factory).run(until)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.registry.stop(toolbox.injector, context)
            await factory.python.aclose()
            for model in factory.models.values():
                await model.aclose()


def _daemon(config: Config, store: Store, clock: Clock, factory: LoopFactory) -> Daemon:
    settings = config.daemon
    attempts = Attempts(
        config.agent.max_attempts,
        config.agent.attempt_base_seconds,
        config.agent.attempt_cap_seconds,
    )
    terms = Terms(settings.lease_seconds, attempts)
    runs = RunStore(store, clock, terms)
    notifier = Notifier.from_environment(os.environ)
    return Daemon(
        run_directory=config.run_path,
        daemons=DaemonStore(store, clock),
        runs=runs,
        leases=LeaseStore(store, clock, terms),
        worker=Worker(runs, factory, factory.toolbox.runners.processes.run_ended),
        clock=clock,
        settings=DaemonSettings(
            concurrency=settings.concurrency,
            poll_s=settings.poll_seconds,
            drain_s=settings.drain_seconds,
            heartbeat_s=settings.heartbeat_seconds,
            lease_s=terms.lease_s,
            reap_s=settings.reap_seconds,
        ),
        stopping=anyio.Event(),
        untouched=store.untouched,
        make_scheduler=partial(_scheduler, config, store, clock),
        retention=_retention(config, store, clock),
        watchdog=_watchdog(config, store, factory, notifier),
        notifier=notifier,
    )


def _scheduler(
    config: Config, store: Store, clock: Clock, daemon_id: DaemonId, stopping: anyio.Event
) -> Scheduler:
    return Scheduler(
        daemon_id=daemon_id,
        schedules=ScheduleStore(store, clock),
        clock=clock,
        stopping=stopping,
        ask_gate=Gate(config.workspace_path, config.schedules.gate_seconds).ask,
        late_s=config.schedules.late_seconds,
        backlog_most=config.schedules.backlog_most,
    )


def _breakers(config: Config, clock: Clock) -> Breakers:
    models = config.models
    return Breakers(
        clock,
        models.breaker_threshold,
        models.breaker_cooldown_seconds,
        models.retry_after_cap_seconds,
    )


def _budget_rules(config: Config, model: Callable[[str], Model]) -> Rules:
    budget = config.budget
    cheaper = budget.cheaper_model if budget.when_spent == "cheaper" else None
    return Rules(
        amounts=budget.amounts(),
        when_spent=budget.when_spent,
        cheaper=partial(model, cheaper) if cheaper else None,
        zone=budget.zone(),
        wait_most=timedelta(days=config.agent.max_wait_days),
    )


def _retention(config: Config, store: Store, clock: Clock) -> Retention | None:
    if not config.retention.days:
        return None
    return Retention(
        ArchiveStore(store, clock, config.archive_path),
        clock,
        keep=timedelta(days=config.retention.days),
        every_s=config.retention.every_hours * 3600,
    )


def _watchdog(config: Config, store: Store, factory: LoopFactory, notifier: Notifier) -> Watchdog:
    settings = config.watchdog
    return Watchdog(
        Sources(
            home=config.home,
            run_directory=config.run_path,
            ask_database=store.ping,
            untouched=store.untouched,
            breaker_states=factory.breaker_states,
            clock=factory.clock,
        ),
        HealthBounds(
            memory_warn_mb=settings.memory_warn_mb,
            memory_fail_mb=settings.memory_fail_mb,
            lag_warn_s=settings.lag_warn_ms / 1000,
            lag_fail_s=settings.lag_fail_ms / 1000,
            disk_least_mb=settings.disk_least_mb,
            database_warn_s=settings.database_warn_ms / 1000,
            database_fail_s=settings.database_fail_ms / 1000,
        ),
        interval_s=settings.interval_seconds,
        first_s=settings.first_seconds,
        tell=notifier.status,
    )


def _programs(
    config: Config, python: PythonCode, settled: Callable[[], Awaitable[None]]
) -> Programs:
    code = config.code
    interpreters: dict[str, Interpreter] = {"python": python}
    if deno := find_deno():
        interpreters["typescript"] = TypeScriptCode(deno)
    limits = CodeLimits(
        run_s=code.seconds,
        code_bytes=code.code_bytes,
        tool_calls=code.tool_calls,
        memory_bytes=code.memory_mb << 20,
        output_bytes=code.output_bytes,
    )
    return Programs(interpreters, limits, Seal(config.code_key_path), settled)


def _patience(config: Config) -> Backoff:
    models = config.models
    return Backoff(
        attempts=models.retry_attempts,
        base_s=models.retry_base_seconds,
        cap_s=models.retry_cap_seconds,
        retry_after_cap_s=models.retry_after_cap_seconds,
    )


def _provider_settings(config: Config) -> ProviderSettings:
    anthropic, openai = config.models.anthropic, config.models.openai
    return ProviderSettings(
        anthropic_key=anthropic.api_key.get_secret_value() if anthropic.api_key else None,
        anthropic_base_url=anthropic.base_url,
        stall_s=config.models.stall_seconds,
        openai_key=openai.api_key.get_secret_value() if openai.api_key else None,
        openai_base_url=openai.base_url,
    )
