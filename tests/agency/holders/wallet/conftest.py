"""The web wallet of a hosted holder, as a browser opens it."""

import pytest
from django.utils import timezone

from agency.holders.wallet import links, pins
from agency.holders.wallet.models import PersonalLink, PinTry, WalletSession
from tenants import audit, vault
from tests.support.people import Caller
from tests.support.steps import step
from wallets.models import Wallet

PIN = "284615"
VALUES = {"name": "Balthazar-4711", "year": "2021"}


def wallet_of(holder):
    return Wallet.objects.get(wallet_id=holder.wallet_id)


def link_of(holder):
    """The path of a new personal link."""
    made = links.create_link(wallet_of(holder), by=audit.SYSTEM)
    return f"/w/{made.token}"


def opens_wallet(holder, path=None):
    """A browser in which the link was opened and the PIN chosen."""
    browser = Caller(headers={"Accept": "text/html", "Accept-Language": "en"})
    browser.get(path or link_of(holder))
    answer = browser.post("/w/pin", {"pin": PIN})
    assert answer.status_code == 302, answer.text
    return browser


def refuses(answer, status, code):
    """Assert that it is the page of this error, whose code no holder reads."""
    marked = f'data-code="{code}"' in answer.text
    assert (answer.status_code, marked) == (status, True)
    assert f">{code}<" not in answer.text


def has_guessed(holder, number, address="127.0.0.1"):
    """Let so many PINs of a holder's link have been wrong at an address."""
    link = PersonalLink.objects.get(wallet=wallet_of(holder))
    tried = {"link": link, "address": vault.keyed_digest(address)}
    PinTry.objects.bulk_create(
        PinTry(tenant=link.tenant, **tried) for _ in range(number)
    )


def guessed_at(address, faber):
    """Let as many PINs have been wrong at an address as it takes for turns."""
    link_of(eve := faber.hosts("Eve"))
    has_guessed(eve, pins.OF_CROWD, address)


def newest_of(holder, model):
    return model.objects.filter(wallet__wallet_id=holder.wallet_id).latest("pk")


@step
def degree(faber):
    return faber.defines(*VALUES, name="Degree")


@step
def card(faber, alice, degree):
    alice.receives(faber, degree, VALUES)


@step
def opened(faber, alice):
    return opens_wallet(alice)


@pytest.fixture
def wallet(opened):
    WalletSession.objects.update(used_at=timezone.now())
    return opened
