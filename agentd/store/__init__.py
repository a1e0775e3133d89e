"""The database: one DuckDB file that many processes share.

file_lease.py  the turnstile: whose turn it is to hold the file
hub.py         the in-memory DuckDB instance, ATTACH and DETACH, and what its errors mean
engine.py      the one thread that touches DuckDB
store.py       `async with store.transaction() as conn`: short transactions, grouped commits
connection.py  what a transaction offers: fetch, fetch_one, fetch_value, execute, execute_many
turns.py, batch.py, coalesce.py   who commits with whom, and what one failure costs the others
queries.py     reads sql/<table>.sql
schema.py      runs migrations/NNNN_<what>.sql, in numeric order
tasks.py, runs.py, leases.py, endings.py   the queue: for people, claims, ownership, ends
schedules.py   what runs by the clock, and its ledger
budgets.py     the ledger: what calls have cost, and what those under way may cost
files.py       the database as files: copied and replaced while nobody has it open
instance.py, snapshot.py   a DuckDB of its own, on a private copy of the database
checks.py, backups.py, compact.py, salvage.py   the care of the database
archives.py    old sessions in Parquet files
views.py, asking.py   what people ask with `agentd sql`
sessions.py, events.py, model_calls.py, daemons.py   one module per table
"""
