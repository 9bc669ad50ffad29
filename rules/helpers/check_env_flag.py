import os


def check_env_flag(name, default=""):
    """Say whether the environment variable is "true" or a number above 0."""
    value = os.environ.get(name, default)
    return value == "true" or (value.isdigit() and int(value) > 0)
