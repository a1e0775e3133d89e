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
logs.py        how log lines look
"""
