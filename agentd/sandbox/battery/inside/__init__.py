"""Attacks, run inside the sandbox: one file for each kind, nothing but the standard library.

Each takes the targets. It returns in words how it escaped; what it returns nothing of, or what ends
in an OSError or a lack of memory, was stopped. Each does no harm where it succeeds.
"""
