"""Monthly billing that survives a kill at any line: each customer is charged once and mailed once."""
