"""Files of the workspace. Nothing outside it is reached: see agentd/sandbox/."""
