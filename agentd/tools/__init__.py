"""The builtin tools: a folder for each group, a file for each tool. Found by walking the package."""
