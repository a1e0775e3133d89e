"""What `scripts/soak` runs.

load.py      tasks of every kind, and the model server that plays them, well or ill
twins.py     the two daemon processes, and what is done to them
gauges.py    what is measured, and how much of it may grow
__main__.py  the whole, and its report
"""
