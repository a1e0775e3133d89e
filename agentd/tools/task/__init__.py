"""The queue as tools: end the current task, and enqueue, look at and change others."""
