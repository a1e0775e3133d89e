"""The one DuckDB transaction that a group of short ones shares. Lives on the engine's thread.

When a statement of one owner fails, that owner alone fails: the batch is rolled back and the
statements of the others run again. Under the lease nobody else can have written, so they must give
the same rows; that is checked.
"""

from dataclasses import dataclass, field
from typing import Any

from agentd.domain.errors import RunLost, StillRunning, StoreError, StoreFailed
from agentd.domain.run import Run
from agentd.store.coalesce import mentions, merged, plain_insert_into, units
from agentd.store.hub import Hub, Row


class Owner:
    """One short transaction of the group. `failure` ended it; `run` must still own its task.

    `ends`: at the commit the task may not be running any more.
    """

    __slots__ = ("ends", "failure", "run")

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.run: Run | None = None
        self.ends = False


@dataclass(slots=True, eq=False)
class Statement:
    """One statement of one owner. `rows` is empty until it ran, and if nobody wants them."""

    owner: Owner
    sql: str
    parameters: dict[str, Any]
    wants_rows: bool = True
    ours: bool = True  # the text is from `sql/`: it names every table that it touches
    rows: list[Row] = field(default_factory=list[Row])


def _can_wait(statement: Statement) -> bool:
    """Whether it may be merged: without parameters two equal ones would become one row."""
    plain = plain_insert_into(statement.sql) is not None
    return plain and bool(statement.parameters) and not statement.wants_rows


Unit = list[Statement]  # more than one only when they are merged inserts
_OWNERS = "SELECT id, token, state FROM tasks WHERE id = ANY($ids)"
_OWNER = "SELECT id, token, state FROM tasks WHERE id = $id"


@dataclass(slots=True)
class Batch:
    """`ran` is what the transaction holds; `held` are inserts that can wait to be merged."""

    ran: list[Unit] = field(default_factory=list[Unit])
    held: list[Statement] = field(default_factory=list[Statement])
    broken: StoreError | None = None

    def run(self, hub: Hub, statements: list[Statement]) -> None:
        """Run what may still run; a failing statement ends its owner, not the batch.

        Raises StoreError when the batch can not be saved any more.
        """
        if self.broken is not None:
            raise self.broken
        for statement in statements:
            if statement.owner.failure is not None:
                continue
            if _can_wait(statement):
                self.held.append(statement)
                continue
            self._run_held(hub, before=statement.sql if statement.ours else None)
            self._run_singly(hub, [statement])

    def forget(self, hub: Hub, owner: Owner) -> None:
        """Undo what `owner` did and keep the rest."""
        self.held = [statement for statement in self.held if statement.owner is not owner]
        kept = ([each for each in unit if each.owner is not owner] for unit in self.ran)
        self.ran = [unit for unit in kept if unit]
        self._again(hub)

    def commit(self, hub: Hub, statements: list[Statement]) -> None:
        """Run the last statements and put everything on disk. Raises StoreError for all owners."""
        try:
            self.run(hub, statements)
            self._run_held(hub)
            self._drop_lost_runs(hub)
        except BaseException:
            hub.rollback()
            raise
        if self.broken is not None:
            hub.rollback()
            raise self.broken
        if hub.in_transaction:
            hub.commit()

    def _run_held(self, hub: Hub, before: str | None = None) -> None:
        """Run the held inserts, or those into tables that the statement `before` names."""
        due: list[Statement] = []
        later: list[Statement] = []
        for each in self.held:
            now = before is None or mentions(before, plain_insert_into(each.sql) or "")
            (due if now else later).append(each)
        self.held = later
        for merged_ones in units(due):
            # The owner may have failed with an earlier one.
            unit = [each for each in merged_ones if each.owner.failure is None]
            if not unit:
                continue
            try:
                self._run_unit(hub, unit)
            except StoreError:
                self._again(hub)
                self._run_singly(hub, unit)

    def _run_unit(self, hub: Hub, unit: Unit) -> None:
        if not hub.in_transaction:
            hub.begin()
        if unit[0].wants_rows:
            (statement,) = unit
            statement.rows = hub.run(statement.sql, statement.parameters)
        else:
            hub.do(*merged(unit))
        self.ran.append(unit)

    def _run_singly(self, hub: Hub, unit: Unit) -> None:
        for statement in unit:
            if statement.owner.failure is not None:
                continue
            try:
                self._run_unit(hub, [statement])
            except StoreError as error:
                statement.owner.failure = error
                self.forget(hub, statement.owner)
                self._explain(hub, statement.owner)

    def _explain(self, hub: Hub, owner: Owner) -> None:
        """Of a run that has lost its task that is the reason, whatever its statement ran into."""
        if owner.run is None:
            return
        if not hub.in_transaction:
            hub.begin()
        found = hub.run(_OWNER, {"id": owner.run.task_id})
        ours = [row for row in found if row["token"] == owner.run.token]
        if not ours or ours[0]["state"] != "running":
            owner.failure = RunLost(owner.run.task_id, owner.run.id)

    def _again(self, hub: Hub) -> None:
        """Start over with what is in `ran`; if that fails, nobody of the group is acknowledged."""
        earlier, self.ran = self.ran, []
        try:
            if self.broken is not None:
                raise self.broken
            hub.rollback()
            for unit in earlier:
                before = unit[0].rows
                self._run_unit(hub, unit)
                if before != unit[0].rows:
                    raise StoreFailed("a group of writes could not be repeated after a rollback")
        except StoreError as error:
            self.broken = error
            hub.rollback()
            raise

    def _drop_lost_runs(self, hub: Hub) -> None:
        """The fencing: what a run wrote counts only while its token is the task's newest."""
        owners = {statement.owner for unit in self.ran for statement in unit}
        fenced = [(owner, owner.run) for owner in owners if owner.run is not None]
        if not fenced or self.broken is not None:
            return
        ids = list({run.task_id for _, run in fenced})
        # A plain comparison takes half the time of the list, and one run at a time is common.
        found = hub.run(_OWNERS, {"ids": ids}) if ids[1:] else hub.run(_OWNER, {"id": ids[0]})
        tasks = {row["id"]: row for row in found}
        for owner, run in fenced:
            task = tasks.get(run.task_id)
            ours = task is not None and task["token"] == run.token
            running = task is not None and task["state"] == "running"
            if not ours or not (running or owner.ends):
                owner.failure = RunLost(run.task_id, run.id)
            elif running and owner.ends:
                owner.failure = StillRunning(f"task {run.task_id} is still running")
            if owner.failure is not None:
                self.forget(hub, owner)
