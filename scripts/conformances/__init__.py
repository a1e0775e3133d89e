"""What `scripts/conformance` runs: the suite from npm, the client and the server that it tests."""
