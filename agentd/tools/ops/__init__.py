"""Tools about this installation: how well it is."""
