"""Training of the small models that jobs need and that are not published."""
