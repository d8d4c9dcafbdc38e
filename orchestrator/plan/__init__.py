"""Planning: from a sweep file to the jobs that are left to run here."""
