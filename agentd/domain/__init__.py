"""The ground: the words of agentd as types. No input or output; imports nothing of ours.

backoff.py     how long to wait before the next try, and how often to try
budget.py      limits of money and tokens
capability.py  the marker of what may be injected into a tool
clock.py       the only file that reads the time
errors.py      the tree of errors
event.py       one row of a session's journal
ids.py         distinct id types, and how they are made
news.py        what processes tell each other after a commit
run.py         one claim of a task, with its fencing token
schedule.py    what runs by the clock, and what became of each occurrence
session.py     a conversation
task.py        the queue's unit, its states and their transitions
usage.py       tokens and money of one model call
"""
