"""Vocabulary adaptation of language models: n-gram tokenizers, their embeddings and fine-tuning."""
