"""Other tools that answer the same questions, run as processes: one file a tool."""
