"""The figures of docs/benchmarks.md: `scripts/bench` measures them, each beside its reference.

figures.py     what a figure is, its target, and how it is printed
store.py       transactions through the shared lease beside always-open, open-per-call, SQLite
visitor.py     the second process that wants the same file, and how long it waits
daemons.py     pickup latency, tasks per second, wall time against a slow model server
cold.py        how long the command line takes to start
"""
