"""What keeps tools inside.

workspace.py   files below the roots: nothing outside them is reached, whatever a path says
walk.py        how a path is followed, one component at a time, without a race
roots.py       the folders that tools may reach
changes.py     several files changed at once: all of them, or none
receipts.py    what an edit is about to do, on the disk before it does it
edits.py       edits that a crash does not leave half done
commands.py    confined commands: the only way by which tools start a process
bubblewrap.py  what a confined command sees of the machine
running.py     one that runs, confined or not, and how all of it ends
finish.py      one from its start to its end
branches.py    commands whose changes count all together, or not at all
merge.py       how the changes on a branch come to the files
control_group.py  a control group for each, where the machine lets us make one
limits.py      how much a command may take
features.py    what this machine can enforce
seccomp.py     the system calls that no command needs
tree.py        the processes that a process has started
capture.py     the start and the end of an output
terminal.py    output without what would steer a terminal
egress.py      where tools and commands may connect to
addresses.py   which addresses are public
http.py        HTTP to the outside: what tools ask, and what they get
hops.py        how it is done, one request after the other
proxy.py       HTTP for commands that were granted network
network.py     how such a command gets to it
bridge.py      what stands between the two, inside the sandbox
connections.py how it connects, and what went wrong with that
host_commands.py  commands of the configuration that run outside, host_process.py runs them
ssh.py         the OpenSSH client, told everything
git/           git for an agent whose repositories may be hostile
battery/       the proof: attacks from inside, watched from outside
configured.py  host commands and git, as the configuration says them
"""
