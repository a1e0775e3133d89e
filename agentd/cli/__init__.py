"""The face for people. A command parses, calls one function of a lower room, and prints.

main.py        the entry point: groups, the last resort for errors, exit codes
context.py     what every command shares: the home, its configuration, an opened store
output.py      tables, JSON, colours
progress.py    how far a long work is
follow.py      a task's journal as it grows
<noun>.py      one file for each hand-written noun
generated.py   `agentd <group> <tool>`, made from the tools
"""
