"""Errors of OpenID4VCI and OAuth: a code of the protocol, for the wallet."""


class ProtocolError(Exception):
    """A request that is refused.

    code: of OpenID4VCI 1.0 section 8.3 or RFC 6749 section 5.2. scheme: of the
    `WWW-Authenticate` that comes with 401.
    """

    def __init__(
        self, code: str, description: str, status: int = 400, scheme: str = ""
    ) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status
        self.scheme = scheme


def invalid_token(scheme: str = "Bearer") -> ProtocolError:
    return ProtocolError(
        "invalid_token", "The access token is not known, or has expired.", 401, scheme
    )
