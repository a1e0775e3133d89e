"""Git, for an agent whose repositories may be hostile.

address.py     what a remote may be called
repository.py  git inside the sandbox, on the workspace's repository
mirror.py      git outside the sandbox, on a bare repository of ours: the only part with a network
git.py         status, commit, log, and how pull and push go from one to the other
"""
