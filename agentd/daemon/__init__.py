"""One `agentd run` process.

daemon.py      registers, starts the services, stops them in order
supervisor.py  looks at the queue, claims, and owns the workers
worker.py      one claimed task, from its claim to its ending
leases.py      the heartbeat of this daemon, and a watch on the leases of others
reaper.py      puts back what daemons that died or hang left running
scheduler.py   fires what is due
gate.py        the command that says whether an occurrence is worth a run
retention.py   moves old sessions to the archive
presence.py    the lock that says that a daemon lives
wake.py        datagrams by which processes tell each other that the queue changed
signals.py     SIGTERM and SIGINT
watchdog.py    looks how well this process is, and writes it down
vitals.py      what it measures: memory, descriptors, disk, the lag of the loop
probe.py       what it asks the database
checks.py      what it makes of that, by the bounds of the configuration
health_files.py  its last look, for other processes
notify.py      what systemd is told
logs.py        how log lines look
"""
