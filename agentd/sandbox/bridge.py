"""Runs inside the sandbox in front of a command that was granted network.

bridge.py SOCKET PORT COMMAND [ARGUMENT …]

Listens on a loopback port of the command's own, empty network and passes each connection on to the
daemon's proxy, a Unix socket. Stands alone: the standard library, any Python 3, nothing of agentd.
The command takes this process over (exec), so that its exit code and signals are its own; what
listens is an orphan of the sandbox's first process, not a child that the command did not make.
"""

import os
import signal
import socket
import sys


def main(socket_path: str, port: int, command: "list[str]") -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)  # from here on the command can connect; it is answered a moment later
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            try:
                _serve(listener, socket_path)
            finally:
                os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
    # Python ignores these; a command that inherited that would never end at a closed pipe.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, _environment())  # noqa: S606 - argv as given, no shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _environment() -> "dict[bytes, bytes]":
    """As it was given: Python itself adds LC_CTYPE where there is no locale."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib takes 10 ms to load
        pairs = (each.partition(b"=") for each in file.read().split(b"\0") if each)
        return {name: value for name, _, value in pairs}


def _serve(listener: socket.socket, socket_path: str) -> None:
    import asyncio  # noqa: PLC0415 - 50 ms that the command does not wait for

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(socket_path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, back), copy(there, writer))
        back.close()
        writer.close()

    async def forever() -> None:
        server = await asyncio.start_server(connected, sock=listener)
        await server.serve_forever()

    asyncio.run(forever())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
