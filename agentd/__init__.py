"""agentd: a durable agent daemon. Tasks in, journalled runs out.

Rooms, top to bottom; imports only go down:
    cli/        the face for people
    app.py      the composition root: knows every concrete class
    daemon/     supervisor, worker, wake: the services of one `agentd run`
    agent/      the loop, the transcript, dispatch of tool calls
    tools/      the builtin tools, a folder per group and a file per tool
    toolkit/    what a tool is: definition, registry, injection, result, adapters
    models/     model providers: anthropic, scripted
    sandbox/    confined paths
    store/      the database: shared lease, migrations, one module per table
    config.py   agentd.toml and AGENTD_* as one frozen object
    domain/     words, states, ids, errors, the clock
"""

__version__ = "0.1.0"
