"""Tools for version control."""
