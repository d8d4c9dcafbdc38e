"""Tables: what was planned, measured and derived."""
