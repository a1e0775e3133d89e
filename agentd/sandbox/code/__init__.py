"""Confined code: programs of the model that reach nothing but the tools they ask for.

program.py   what a program is: it pauses at tool calls until they are answered
jsonable.py  a value of a program as JSON, however large or twisted it is
python.py    Python, on Monty
typescript.py  TypeScript, on Deno; bootstrap.ts is what runs in front of a program there
wall.py       a second wall around an interpreter
seal.py      the key with which the state of a paused program is sealed
"""
