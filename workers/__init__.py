"""Workers: run(job) -> Outcome; the only room with torch, timm and pynvml. Knows neither Ray nor
SQL.
"""
