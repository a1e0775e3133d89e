"""One `agentd run` process.

daemon.py      registers, starts the services, stops them in order
supervisor.py  looks at the queue, claims, and owns the workers
worker.py      one claimed task, from its claim to its ending
reaper.py      puts back what daemons that died left running
retention.py   moves old sessions to the archive
presence.py    the lock that says that a daemon lives
wake.py        datagrams by which processes tell each other that the queue changed
signals.py     SIGTERM and SIGINT
logs.py        how log lines look
"""
