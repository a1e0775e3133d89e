"""Background processes: they outlive a turn, and never their session or their daemon.

log.py         the output of one process, on the disk, its end kept
registry.py    the processes of this daemon, and what is known of all others
"""
