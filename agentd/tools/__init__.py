"""The builtin tools: a folder for each group, a file for each tool, found by walking."""
