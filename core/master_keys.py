"""Read a master key: from a variable or a file, or as the output of a command."""

import base64
import binascii
import shlex
import subprocess

from django.core.exceptions import ImproperlyConfigured

KEY_BYTES = 32
COMMAND_SECONDS = 20


def read_master_key(name: str, given: str, command: str) -> bytes | None:
    """Return the 32 bytes, or None if nothing is given.

    name: of the variable, for messages, which never quote a key or what a command
    said. given: base64. command: is run once, without a shell. Raises
    ImproperlyConfigured.
    """
    if given and command:
        raise ImproperlyConfigured(
            f"{name} and {name}_COMMAND are both set. Give the key in one way."
        )
    text = run_command(f"{name}_COMMAND", command) if command else given
    if not text and not command:
        return None
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        source = f"What {name}_COMMAND prints" if command else name
        raise ImproperlyConfigured(
            f"{source} must be the base64 of 32 bytes. Make a key, once, and keep "
            "it safe: python -c 'import base64, os; "
            "print(base64.b64encode(os.urandom(32)).decode())'"
        )
    return key


def run_command(name: str, command: str) -> str:
    """Return what the command prints. Raises ImproperlyConfigured."""
    try:
        ran = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it may quote the key
            timeout=COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        problem = f"has not ended within {COMMAND_SECONDS} seconds"
    except (OSError, ValueError) as error:
        problem = f"cannot be run ({type(error).__name__})"
    else:
        if ran.returncode == 0:
            return ran.stdout.decode(errors="replace")
        problem = f"failed with exit code {ran.returncode}"
    raise ImproperlyConfigured(
        f"The command of {name} {problem}. Run it by hand as the user of the service."
    )
