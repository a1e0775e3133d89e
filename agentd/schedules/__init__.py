"""What runs by the clock. Reads definitions and decides; it fires nothing by itself.

trigger.py     when a definition is due: cron, interval, moment
backlog.py     what becomes of the occurrences that are due by now
scheduling.py  add, list, enable, trigger, simulate, explain: for the command line and the tool
"""
