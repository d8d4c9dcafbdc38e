"""Reading: what reports, pages and planning ask of a store."""
