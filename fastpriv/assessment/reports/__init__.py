"""What an assessment says: the result of one column and mechanism, a sweep of several, tables, files and summaries."""
