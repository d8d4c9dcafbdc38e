"""Words: what results are called and how they are stated, for terminal, reports and pages."""
