"""The proof that commands are confined: attacks from inside, watched from outside.

inside/       the attacks themselves, run by the sandbox's own python
attacks.py    each attack: what it tries, and what is to stop it
arena.py      what they attack: files, sockets, a process, with a secret that must not come out
prove.py      runs them one by one, and judges
standing.py   how a confined command stands: namespaces, filter, capabilities, limits
"""
