"""Methods for causal language models, one file each."""
