"""The marker of everything that a tool may ask for by declaring a parameter of that type."""


class Capability:
    """Base of each type that is injected into tools and never part of a model's input.

    A tool reaches only what its signature names; this marker is what tells such a parameter from
    the model's input.
    """

    __slots__ = ()
