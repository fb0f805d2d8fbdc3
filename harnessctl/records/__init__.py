"""On-disk records: versioned types that everything above reads and writes."""
