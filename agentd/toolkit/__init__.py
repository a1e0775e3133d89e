"""What a tool is.

definition.py  the decorator, and what it makes of a function
schema.py      the input as JSON Schema that every provider takes
inject.py      capabilities: what a function gets because it asks for it
result.py      what a call gives, and the one place that truncates
call.py        validating, calling, catching: the one place that catches
registry.py    the tools of one installation, by unique names
discover.py    finds tools in the package, in entry points and in the home
adapters/      the same definitions for Anthropic, OpenAI, the command line, sandboxed code
"""
