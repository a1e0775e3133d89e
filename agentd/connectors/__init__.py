"""MCP in both directions: servers whose tools agentd uses, and the server that agentd is.

specs.py        mcp.json: which servers there are; what is wrong with it, in words
names.py        the names under which their tools appear
guard.py        the process between the daemon and a server: when one ends, so does the other
stdio.py        a server as a child process: bounded lines, its last words, its end
network.py      HTTP: bounded answers, and no way inside
session.py      one open connection, whatever the transport
server.py       one server: its owner task, its state, its calls
servers.py      all of them: McpManager, what tools may ask for
sieve.py        listings as they come in: bad tools taken out one by one
catalog.py      what a server lists: filtered, checked, bad tools set aside
proxy.py        a listed tool as a tool of ours
results.py      what a server answers, as a result of ours
questions.py    what a server asks a person in the middle of a call
asking.py       the answers to it, as far as they stand in the journal
images.py       whether an image is one that the models take
failures.py     what goes wrong with a server
ranking.py      which tools fit some words (BM25)
tokens.py       OAuth: tokens in files, refreshed without anybody
login.py        OAuth: a person and a browser, or a pasted code
serving.py      agentd's own tools for other MCP clients
system_info.py  the bundled server: the machine, its disks, its network
interfaces.py   the network interfaces of this machine
"""
