"""The QR code of a link. It holds the whole invitation if that fits."""

import base64
import io

import qrcode.image.pil
import qrcode.image.svg
from qrcode import constants
from qrcode.exceptions import DataOverflowError
from qrcode.main import QRCode

from connections.didcomm import message as didcomm
from connections.didcomm.message import Body
from connections.invitation_links import query_name
from connections.models import Connection

FORMS = {
    "svg": ("image/svg+xml", qrcode.image.svg.SvgPathFillImage),
    "png": ("image/png", qrcode.image.pil.PilImage),
}
GOOD_VERSION = 12  # is read at once from any screen
MAX_VERSION = 20
OPTIONAL = {"accept", "goal", "goal_code", "imageUrl", "routingKeys"}
OF_SERVICE = {"routingKeys", "priority"}
STRONGER = (constants.ERROR_CORRECT_Q, constants.ERROR_CORRECT_M)


def data_address(text: str) -> str:
    """The code of a text as an address that holds the picture.

    For a secret link: no other address may contain it.
    """
    code = smallest_code(text)
    assert code, "the text is short"
    picture = base64.b64encode(draw_code(code, "svg")).decode()
    return f"data:image/svg+xml;base64,{picture}"


def draw_code(code: QRCode, form: str) -> bytes:
    """The picture of a code as `svg` or `png`."""
    data = io.BytesIO()
    code.make_image(image_factory=FORMS[form][1]).save(data)
    return data.getvalue()


def code_of(connection: Connection) -> QRCode:
    """The code of the invitation without optional members.

    It keeps the picture if the code is not larger than GOOD_VERSION. The code holds
    the short link instead for an offer or a request, if the organization chose short
    links, if the link carries two invitations, and if the code would be larger than
    MAX_VERSION. That of a wallet of OpenID4VC holds what opens it.
    """
    if connection.wallet_link:
        code = smallest_code(connection.wallet_link)
        assert code, "such a link fits"
        return code
    tenant = connection.wallet.tenant
    wants_short = tenant.short_qr_codes or connection.link_has_both
    has_exchange = connection.connectionless or connection.shared is not None
    if not has_exchange and not wants_short:
        invitation = connection.invitation
        kept = {name: invitation[name] for name in ("imageUrl",) if name in invitation}
        with_picture = smallest_code(
            link_with(connection, without_optional(invitation) | kept)
        )
        if with_picture and with_picture.version <= GOOD_VERSION:
            return with_picture
        code = smallest_code(link_with(connection, without_optional(invitation)))
        if code and code.version <= MAX_VERSION:
            return code
    assert connection.invitation_url, "an invitation has a token"
    code = smallest_code(connection.invitation_url)
    assert code, "a short link fits"
    return code


def without_optional(invitation: Body) -> Body:
    """The invitation without members that an agent does not need to accept it."""
    kept = {name: value for name, value in invitation.items() if name not in OPTIONAL}
    services = kept.get("services")
    if isinstance(services, list):
        # A public DID among the services stays as it is.
        kept["services"] = [
            {name: service[name] for name in service if name not in OF_SERVICE}
            if isinstance(service, dict)
            else service
            for service in services
        ]
    return kept


def link_with(connection: Connection, invitation: Body) -> str:
    """The long link: that of the connection, with this message in its query."""
    data = didcomm.encode_url(invitation, separators=(",", ":"))
    return f"{connection.invitation_url}?{query_name(invitation)}={data}"


def smallest_code(text: str) -> QRCode | None:
    """The smallest code, with the best error correction that fits.

    None if the text is too long.
    """
    smallest = fit_code(text, constants.ERROR_CORRECT_L)
    if not smallest:
        return None
    for level in STRONGER:
        stronger = fit_code(text, level)
        if stronger and stronger.version == smallest.version:
            return stronger
    return smallest


def fit_code(text: str, level: int) -> QRCode | None:
    code = QRCode(error_correction=level, border=4, box_size=8)
    code.add_data(text)
    try:
        code.best_fit()
    except (DataOverflowError, ValueError):  # the library raises either for version 41
        return None
    return code
