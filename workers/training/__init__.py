"""Training of the small models that jobs need and nobody publishes."""
