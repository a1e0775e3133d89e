"""What can be said of a key before anybody is asked."""


def problem_of_key(key: str, owner: str) -> str | None:
    """What is wrong with a key at first sight. An illegal one would be shown by the HTTP client."""
    if not key:
        return f"there is no key for {owner}"
    if not (key.isascii() and key.isprintable()):
        return f"the key for {owner} holds a character that no key has"
    return None
