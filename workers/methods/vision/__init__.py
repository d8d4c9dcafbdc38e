"""Methods for vision transformers, one file each."""
