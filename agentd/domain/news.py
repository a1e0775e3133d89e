"""What processes tell each other after a commit; what is more contains what is less."""

from enum import IntEnum


class News(IntEnum):
    NONE = 0
    QUEUE = 1  # tasks, or messages to sessions
    SCHEDULES = 2  # and what runs by the clock
