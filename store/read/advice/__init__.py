"""What a store can advise: the measured arms of each condition."""
