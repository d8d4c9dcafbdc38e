"""Tables of measurements of anyone as values: CSV, Markdown, published tables in YAML."""
