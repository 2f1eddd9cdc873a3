"""Mail addresses that people wrote into a form or a file."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MAX_ADDRESS = 254  # RFC 5321, section 4.5.3.1.3
REFUSED = "This is no mail address, such as alice@example.org."


def clean_address(text: str) -> str:
    """Return the address as it stands in a header, its domain in ASCII.

    Raises ValueError with a sentence for what is none. An address has no line end and
    no second address, so it cannot change a header.
    """
    if len(text) > 2 * MAX_ADDRESS:  # an attribute may be a picture
        raise ValueError(REFUSED)
    local, at, domain = text.strip().rpartition("@")
    try:
        address = f"{local}{at}{domain.encode('idna').decode()}"
        validate_email(address)
    except (UnicodeError, ValidationError):
        raise ValueError(REFUSED) from None
    # Not `localhost`, and no address of the internet: they are of the mail server itself
    # or of its network.
    is_far = "." in domain and not domain.startswith("[")
    if not is_far or not address.isascii() or len(address) > MAX_ADDRESS:
        raise ValueError(REFUSED)
    if '"' in address:
        raise ValueError(REFUSED)
    return address


def find_address(text: str) -> str:
    """The address as clean_address() returns it, or ""."""
    try:
        return clean_address(text)
    except ValueError:
        return ""
