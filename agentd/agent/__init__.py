"""The agent: one task from its first message to a terminal tool.

loop.py        a turn after the other until the task ends
transcript.py  the journal as messages for the model; nothing else makes them
journal.py     the events of one run's session, and how they are written
opening.py     what the model is told when a run starts: prompt, predecessors, what woke it
asking.py      one reply of the model: attempts, waiting, usage
failover.py    which model is asked
dispatch.py    the tool calls of a turn: order, intents, effects, results
resume.py      what becomes of calls that a crash cut off
budget.py      what a call may cost, set aside before it is made
ledger.py      the runs of this process that ask for money together
measure.py     how many tokens a request can have at the most
spent.py       what becomes of a task whose next call would break a limit
guards.py      recognises a task that goes round in circles
endings.py     replies without a tool call, limits, stop reasons: what follows from them
prompt.py      the system prompt
"""
