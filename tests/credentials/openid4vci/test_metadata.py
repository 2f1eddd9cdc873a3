"""What wallets read of an issuer before they ask it for anything."""

from tests.support.pictures import picture, storage, uploads
from wallets.jose import certificates, signing
from wallets.models import issuer_url

__all__ = ["storage"]
DISPLAY = {
    "colors": {"background": "#1a2b3c", "text": "#ffffff"},
    "logo": "https://faber.example/logo.png",
    "names": {"en": "Card", "de": "Karte"},
    "labels": {"born": {"en": "Date of birth"}},
}


def test_it_names_the_endpoints_and_each_definition(faber, card, offers, phone):
    faber.defines("name")  # of AnonCreds alone
    phone.open(offers()["link"])
    said = phone.metadata()
    own = issuer_url(faber.tenant.pk)
    assert said["credential_issuer"] == own
    assert said["nonce_endpoint"] == f"{own}/nonce"
    [(name, made)] = said["credential_configurations_supported"].items()
    assert phone.offer["credential_configuration_ids"] == [name]
    assert (made["format"], made["vct"]) == ("dc+sd-jwt", card["vct"])
    paths = [claim["path"] for claim in made["credential_metadata"]["claims"]]
    assert paths == [["Full name"], ["born"], ["year"], ["paid"], ["age_over_18"]]
    server = phone.metadata("oauth-authorization-server")
    assert (server["issuer"], server["token_endpoint"]) == (own, f"{own}/token")


def test_looks_are_those_of_the_definition(faber, phone):
    faber.defines("name", "born", formats=["dc+sd-jwt"], display=DISPLAY)
    phone.issuer = issuer_url(faber.tenant.pk)
    [made] = phone.metadata()["credential_configurations_supported"].values()
    shown = made["credential_metadata"]
    by_language = {one["locale"]: one for one in shown["display"]}
    assert by_language.keys() == {"en", "de"}
    assert by_language["en"] == {
        "name": "Card",
        "locale": "en",
        "background_color": "#1a2b3c",
        "text_color": "#ffffff",
        "logo": {"uri": "https://faber.example/logo.png"},
    }
    [born] = [claim for claim in shown["claims"] if claim["path"] == ["born"]]
    assert born["display"] == [{"name": "Date of birth", "locale": "en"}]


def test_wallets_get_the_picture_of_a_card(faber, phone, storage):
    address = uploads(faber, picture()).json()
    faber.defines("name", formats=["dc+sd-jwt"], display={"picture": address})
    phone.issuer = issuer_url(faber.tenant.pk)
    [made] = phone.metadata()["credential_configurations_supported"].values()
    [shown] = made["credential_metadata"]["display"]
    assert shown["background_image"] == {"uri": address}


def test_it_can_be_read_signed(faber, card, phone):
    phone.issuer = issuer_url(faber.tenant.pk)
    path = phone.issuer.replace(
        "/openid", "/.well-known/openid-credential-issuer/openid"
    )
    response = phone.read(path, accept="application/jwt")
    assert response["Content-Type"] == "application/jwt"
    typ = "openidvci-issuer-metadata+jwt"
    token = signing.read_token(response.content.decode(), typ)
    leaf = certificates.read_chain(token.header["x5c"])[0]
    token.verify(certificates.key_of(leaf))
    assert token.payload["sub"] == token.payload["credential_issuer"] == phone.issuer


def test_its_key_is_that_of_its_credentials(offers, phone):
    held = phone.take(offers()["link"])
    said = phone.metadata("jwt-vc-issuer")
    [jwk] = said["jwks"]["keys"]
    held.verify(signing.read_public_key(jwk))
    assert said["issuer"] == phone.issuer


def test_a_type_has_its_metadata(faber, card, phone):
    said = phone.read(card["vct"]).json()
    assert said["vct"] == card["vct"]
    assert {tuple(claim["path"]) for claim in said["claims"]} >= {("born",)}
    faber.delete(f"/definitions/credentials/{card['definitionId']}")
    assert phone.read(card["vct"]).json() == said
