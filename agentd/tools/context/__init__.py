"""What the model has been told, and how it gets at the rest of it."""
