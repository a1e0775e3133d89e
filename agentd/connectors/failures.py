"""What goes wrong with a server, without the package that talks to it."""

from agentd.domain.errors import AgentdError


class ServerFailed(AgentdError):
    """The server can not be used now. The message says what it did."""

    retryable = True


class LoginNeeded(ServerFailed):
    """The server wants a person to log in first."""
