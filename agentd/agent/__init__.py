"""The agent: one task from its first message to a terminal tool.

loop.py        a turn after the other until the task ends
transcript.py  the journal as messages for the model; nothing else makes them
journal.py     the events of one run's session, and how they are written
opening.py     what the model is told when a run starts: prompt, predecessors, what woke it
asking.py      one reply of the model: attempts, waiting, usage
failover.py    which model is asked
dispatch.py    the tool calls of a turn: order, intents, effects, results
resume.py      what becomes of calls that a crash cut off
endings.py     replies without a tool call, limits, stop reasons: what follows from them
prompt.py      the system prompt
"""
