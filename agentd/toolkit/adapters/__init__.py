"""The same definitions for different readers: one file for each."""
