"""`python -m agentd`."""

from agentd.cli.main import main

if __name__ == "__main__":
    main()
