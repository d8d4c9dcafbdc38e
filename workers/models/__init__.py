"""Models: timm's vision transformers and the causal language models of transformers, and how they
run.
"""
