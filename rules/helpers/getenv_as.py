import os


def getenv_as(name, type, defval=None):
    """Return the environment variable, converted by ``type``; ``defval`` where it isn't set."""
    value = os.environ.get(name)
    if value is None:
        return defval
    return bool(int(value)) if type is bool else type(value)
