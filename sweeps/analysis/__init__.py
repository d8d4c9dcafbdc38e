"""Analysis: what follows from measured answers, as values."""
