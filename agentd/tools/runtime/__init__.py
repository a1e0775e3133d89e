"""Tools that run something: programs of the model."""
