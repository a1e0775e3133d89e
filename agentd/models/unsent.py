"""Whether a request that failed ever left this machine: then it can not have cost anything."""

import errno
import socket

_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def never_left(error: BaseException) -> bool:
    """Whether some cause of `error` says that no connection came about.

    The HTTP clients' own classes do not tell: a connection that was lost has the same ones.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror):
            return True
        if isinstance(cause, OSError) and cause.errno in _NO_WAY:
            return True
        cause = cause.__cause__ or cause.__context__
    return False
