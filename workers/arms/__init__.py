"""Arms: a job's arm turned into a model that is ready to run."""
