"""Job kinds: one file each, named like the kind, with one function `run(job, **options) ->
KindResult`.
"""
