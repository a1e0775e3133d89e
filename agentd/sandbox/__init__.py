"""What keeps tools inside.

workspace.py   files below the roots: nothing outside them is reached, whatever a path says
walk.py        how a path is followed, one component at a time, without a race
roots.py       the folders that tools may reach
changes.py     several files changed at once: all of them, or none
receipts.py    what an edit is about to do, on the disk before it does it
edits.py       edits that a crash does not leave half done
commands.py    confined commands: the only way by which tools start a process
bubblewrap.py  what a confined command sees of the machine
egress.py      where tools and commands may connect to
"""
