"""A folder of pages, tables and a database that any static web server shows."""
