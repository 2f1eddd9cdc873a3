"""Access tokens, subscription keys and provider keys: form, lookup, rotation, end."""

import re
from datetime import timedelta
from hashlib import sha256

import pytest
from django.utils import timezone

from tenants import tokens, vault
from tenants.models import ApiKey, DataKey
from tests.support.people import Api
from tests.support.races import at_once

Kind = ApiKey.Kind


def test_a_token_has_prefix_random_part_and_checksum():
    for prefix in tokens.PREFIXES.values():
        secret = tokens.generate_token(prefix)
        assert re.fullmatch(rf"{prefix}_[0-9A-Za-z]{{38}}", secret)
        assert tokens.is_well_formed(secret, prefix)
        assert tokens.hint_of(secret) == secret[:8]
    assert len({tokens.generate_token("agt") for _ in range(100)}) == 100


def test_what_is_not_exactly_a_token_is_refused():
    secret = "agt_" + "a" * 32 + tokens.checksum_of("agt", "a" * 32)
    assert tokens.is_well_formed(secret, "agt")
    changed = ["", secret[:-1], secret + "0", " " + secret, secret + "\n"]
    changed += [secret.replace("agt", "ags"), secret.upper(), "agt_" + "ü" * 38]
    for place, letter in enumerate(secret):
        other = "0" if letter != "0" else "1"
        changed.append(secret[:place] + other + secret[place + 1 :])
    assert not [one for one in changed if tokens.is_well_formed(one, "agt")]


def test_garbage_is_refused_without_a_look_into_the_database():
    assert ApiKey.find_live(Kind.ACCESS_TOKEN, "agt_" + "x" * 38) is None


def test_only_a_digest_is_kept(faber):
    key = ApiKey.objects.get(tenant=faber.tenant, kind=Kind.ACCESS_TOKEN)
    assert bytes(key.sha256) == sha256(faber.made.access_token.encode()).digest()
    assert bytes(key.digest) == vault.keyed_digest(faber.made.access_token)
    assert len(key.digest) == 32 and faber.made.access_token.startswith(key.hint)


@pytest.fixture
def as_in_0_1_0(faber):
    """The keys have no SHA-256, as that version leaves them."""
    ApiKey.objects.update(sha256=None)


def test_a_key_of_the_former_version_gets_its_sha256_at_its_first_use(
    faber, django_assert_num_queries
):
    # One key may be of that version, or all.
    for some in ({"kind": Kind.SUBSCRIPTION_KEY}, {}):
        ApiKey.objects.filter(**some).update(sha256=None)
        assert faber.send("get", "/connections").status_code == 200
    key = token_of(faber)
    assert bytes(key.sha256) == tokens.digest_of(faber.made.access_token)
    assert bytes(key.digest) == vault.keyed_digest(faber.made.access_token)
    faber.get("/connections")  # the note of the first use has changed the rows
    with django_assert_num_queries(2):
        faber.get("/connections")
    secret = faber.made.provider_key
    assert ApiKey.find_live(Kind.PROVIDER_KEY, secret)
    with django_assert_num_queries(1):
        assert ApiKey.find_live(Kind.PROVIDER_KEY, secret)


def test_a_dead_key_of_the_former_version_stays_dead(faber, as_in_0_1_0):
    for ends in ({"revoked_at": timezone.now()}, {"expires_at": timezone.now()}):
        alive = {"revoked_at": None, "expires_at": None}
        ApiKey.objects.filter(kind=Kind.ACCESS_TOKEN).update(**alive | ends)
        for _ in range(2):
            assert faber.send("get", "/connections").status_code == 401


def test_two_first_uses_at_once_both_find_the_key(faber, as_in_0_1_0):
    secret = {Kind.ACCESS_TOKEN: faber.made.access_token}

    def use():
        return ApiKey.adopt_keys(secret), ApiKey.find_live_by_kind(secret)

    for adopted, found in at_once(use, use):
        assert adopted == 1 and set(found) == {Kind.ACCESS_TOKEN}


def test_the_keyed_digest_depends_on_the_first_master_key(db, settings):
    before = vault.keyed_digest("secret")
    DataKey.objects.all().delete()
    settings.MASTER_KEY = bytes(32)
    vault.forget_keys()
    assert vault.keyed_digest("secret") != before


def token_of(organization):
    return ApiKey.objects.get(tenant=organization.tenant, kind=Kind.ACCESS_TOKEN)


def status_with(token, subscription):
    return Api(token, subscription).send("get", "/connections").status_code


def test_a_rotated_key_and_its_successor_both_work_until_the_overlap_ends(faber):
    successor, secret = token_of(faber).rotate(timedelta(hours=1))
    made = faber.made
    assert status_with(made.access_token, made.subscription_key) == 200
    assert status_with(secret, made.subscription_key) == 200
    old = ApiKey.objects.exclude(pk=successor.pk).get(kind=Kind.ACCESS_TOKEN)
    left = old.expires_at - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert (successor.owner, successor.expires_at) == (faber.tenant, None)
    ApiKey.objects.filter(pk=old.pk).update(expires_at=timezone.now())
    assert status_with(made.access_token, made.subscription_key) == 401
    assert status_with(secret, made.subscription_key) == 200
    # Rotation does not lengthen the life of a key.
    soon = timezone.now() + timedelta(minutes=5)
    ApiKey.objects.filter(pk=successor.pk).update(expires_at=soon)
    successor.refresh_from_db()
    successor.rotate(timedelta(hours=24))
    successor.refresh_from_db()
    assert successor.expires_at == soon


def test_a_revoked_key_stays_revoked_since_then(faber):
    key = token_of(faber)
    key.revoke()
    first = token_of(faber).revoked_at
    key.rotate()
    key.revoke()
    key.refresh_from_db()
    assert (key.revoked_at, key.expires_at, key.is_live) == (first, None, False)
    assert first and faber.send("get", "/connections").status_code == 401


def test_a_revoked_or_expired_key_is_401(faber):
    for kind in (Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY):
        keys = ApiKey.objects.filter(tenant=faber.tenant, kind=kind)
        for ended in ("revoked_at", "expires_at"):
            keys.update(**{ended: timezone.now()})
            assert faber.send("get", "/connections").status_code == 401
            assert not keys.get().is_live
            keys.update(**{ended: None})
        assert faber.send("get", "/connections").status_code == 200


def test_keys_of_other_organizations_and_kinds_are_none(faber, acme):
    made, other = faber.made, acme.made
    for token in (other.access_token, made.provider_key):
        assert status_with(token, made.subscription_key) == 401
    assert status_with(made.access_token, other.subscription_key) == 401
    for kind in Kind:
        found = ApiKey.find_live(kind, made.access_token)
        assert bool(found) == (kind == Kind.ACCESS_TOKEN)


def test_a_refusal_does_not_tell_which_key_is_wrong_or_revoked_or_of_another(
    faber, acme
):
    """What the request itself shows (no key, keys swapped) is another matter."""
    made = faber.made
    pairs = [
        ("x", made.subscription_key),
        (tokens.generate_token("agt"), made.subscription_key),
        (made.access_token, "x"),
        (made.access_token, tokens.generate_token("ags")),
        (made.access_token, acme.made.subscription_key),
        (acme.made.access_token, made.subscription_key),
    ]
    answers = [Api(*pair).send("get", "/connections").json() for pair in pairs]
    token_of(faber).revoke()
    answers.append(faber.send("get", "/connections").json())
    requests = {answer.pop("requestId") for answer in answers}
    assert len(requests) == len(answers)
    assert all(answer == answers[0] for answer in answers)


def test_the_use_of_a_key_is_noted_at_most_once_a_minute(faber):
    faber.get("/connections")
    first = token_of(faber).last_used_at
    faber.get("/connections")
    assert first and token_of(faber).last_used_at == first
    earlier = timezone.now() - timedelta(seconds=61)
    ApiKey.objects.update(last_used_at=earlier)
    faber.get("/connections")
    used = ApiKey.objects.filter(tenant=faber.tenant, last_used_at__gt=first)
    assert used.count() == 2, "the access token and the subscription key"
    assert {key.last_used_address for key in used} == {"127.0.0.1"}


SCHEMES = {"Bearer {}": 200, "bearer {}": 200, "BEARER   {}": 200, "{}": 200}
OTHERS = ("Basic {}", "Bearer {} x", "Bearer", "", "Bearer {}\u00fc")


def test_the_scheme_is_bearer_in_any_case(faber):
    for header, expected in (SCHEMES | dict.fromkeys(OTHERS, 401)).items():
        value = header.format(faber.made.access_token)
        answer = faber.send("get", "/connections", Authorization=value)
        assert answer.status_code == expected, header


def test_only_the_later_clients_need_no_subscription_key(faber, acme):
    name = "X-Streetcred-Subscription-Key"
    faber.headers.pop(name)
    for path in ("/credentials/v1/connections", "/wallet/v1/api/wallets"):
        assert faber.send("get", path).status_code == 200
        wrong = {name: acme.made.subscription_key}
        assert faber.send("get", path, **wrong).status_code == 401
        for other in (name, "X-Service-Subscription-Key"):
            assert faber.send("get", path, **{other: " "}).json() == []
    custodian = "/custodian/v1/api/wallets"
    for path in ("/connections", "/agency/v1/connections", custodian):
        for sent in ({}, {name: ""}, {"X-Service-Subscription-Key": " "}):
            assert faber.send("get", path, **sent).status_code == 401, (path, sent)
