"""Tools for what runs by the clock: one file, two names."""
