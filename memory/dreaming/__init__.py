"""What a night decides about long-term memory. Pure: records in, operations out."""
