"""What keeps tools inside.

workspace.py  files below one folder: nothing outside it is reached, whatever a path says
walk.py       how a path is followed, one component at a time, without a race
"""
