"""What keeps tools inside.

workspace.py   files below one folder: nothing outside it is reached, whatever a path says
walk.py        how a path is followed, one component at a time, without a race
roots.py       the folders that tools may reach
commands.py    confined commands: the only way by which tools start a process
bubblewrap.py  what a confined command sees of the machine
egress.py      where tools and commands may connect to
host_commands.py  commands of the configuration that run outside, host_process.py runs them
ssh.py         the OpenSSH client, told everything
git/           git for an agent whose repositories may be hostile
battery/       the proof: attacks from inside, watched from outside
configured.py  host commands and git, as the configuration says them
"""
