"""Opening a store: its engine, its schema version, and a mark of what it contains."""
