"""People are found by the beginnings of their names, which are sealed."""

from datetime import timedelta
from functools import partial
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F

from bench.many_rows import copy_row
from core.work.retention import BatchBudget
from credentials import name_filling
from credentials.models import Credential, NameDigests, NameKey, name_search
from credentials.models.name_search import beginnings_of, digests_of, find_named
from credentials.name_filling import keep_name_search
from tenants import audit
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.lifecycle.provisioning import change_organization
from tenants.models import ApiKey, Scope, Tenant
from tests.support.errors import assert_error, error_of
from tests.support.people import Api
from tests.support.steps import step

NAMED = {"recipientAttribute": "name"}
ANN = "Ann-Sophie Müller"


@step
def licence(faber):
    return faber.defines("name", "year", **NAMED)


@step
def alice(faber):
    return faber.hosts()


def values(name=ANN):
    return {"name": name, "year": "2020"}


def found(api, text, **more):
    rows = api.get("/credentials", recipientName=quote(text), **more)
    return [row["recipientName"] for row in rows]


PEOPLE = {  # what finds them, and what does not
    ANN: (["an", "SOPH", "muller", "Mül", "müller ann", ANN], ["nn", "ullr", "ann xy"]),
    "Seán O’Brien": (["sean", "o'brien", "OBRIEN", "bri"], ["sian", "oo"]),
    "Łukasz Ðuro İnönü": (["lukasz", "łuk", "duro", "inonu", "INÖ"], ["ukasz"]),
    "Großmann": (["grossmann", "GROSSM", "groß"], ["grosmann"]),
    "Konstantinopoulos": (["konstantin", "Konstantinop", "Konstantinxyz"], ["konstx"]),
    "한지민": (["한지", "한지민"], ["지민"]),
    "राम कुमार": (["राम", "कुमा"], ["सीता"]),
    "李明": (["李明"], ["明李"]),
}


def test_a_person_is_found_by_the_beginnings_of_the_name(
    faber, licence, alice, subtests
):
    offer = partial(faber.offers, alice, licence)
    made = {name: offer(values(name))["credentialId"] for name in PEOPLE}
    assert found(faber, "MÜL") == [ANN]
    for name, (texts, others) in PEOPLE.items():
        for text in texts + others:
            with subtests.test(text):
                ids = [str(pk) for pk in find_named(faber.tenant, text)]
                assert ids == ([made[name]] if text in texts else [])


def test_each_way_to_name_somebody_is_found(faber, licence, alice):
    offered = faber.offers(alice, licence)
    alice.accepts_offer()
    assert found(faber, "late") == []
    faber.put(f"/credentials/{offered['credentialId']}", values("Late Lena"))
    by_link = {"definitionId": licence["definitionId"], "credentialValues": values()}
    faber.post("/credentials", by_link)
    faber.post("/credentials", by_link | {"recipientName": "Given Gina"})
    for name in ("Late Lena", "Given Gina", ANN):
        assert found(faber, name.split()[1]) == [name]
    assert found(faber, "gina", state="Issued") == []
    assert len(found(faber, "lena", definitionId=licence["definitionId"])) == 1


def test_nobody_finds_people_of_another_organization(faber, acme, licence, alice):
    faber.offers(alice, licence, values())
    bob, card = acme.hosts(), acme.defines("name", **NAMED)
    acme.offers(bob, card, {"name": "Bob Zimmer"})
    assert found(acme, "ann") == [] and found(faber, "bob") == []
    ours, theirs = (set(row.digests) for row in NameDigests.objects.order_by("pk"))
    assert digests_of(name_search.key_of(faber.tenant.pk), ["ann"])[0] in ours
    acme.offers(bob, card, {"name": ANN})
    theirs |= set(NameDigests.objects.latest("pk").digests)
    assert not ours & theirs
    # Even if the digests were the same, the organization is a condition.
    NameDigests.objects.update(digests=[*ours])
    assert len(found(acme, "bob")) == 0
    assert len(find_named(faber.tenant, ANN)) == 1


def name_people(organization, names):
    """Give it a credential for each: copies of one, with the digests of the name."""
    card = organization.defines("name", "year")
    organization.offers(organization.hosts(), card)
    row = Credential.objects.get(tenant=organization.tenant, role="issuer")
    numbered = f"(SELECT uuidv7() AS own FROM generate_series(1, {len(names)}) AS n)"
    copy_row(Credential, row.pk, f"{numbered} AS x", id="own", thread_id="own::text")
    copies = Credential.objects.filter(tenant=organization.tenant, role="issuer")
    key = name_search.key_of(organization.tenant.pk)
    NameDigests.objects.bulk_create(
        NameDigests(
            credential_id=pk,
            tenant=organization.tenant,
            digests=digests_of(key, beginnings_of(name)),
        )
        for pk, name in zip(
            copies.exclude(pk=row.pk).values_list("pk", flat=True), names, strict=True
        )
    )


def test_of_500_people_of_another_organization_none_is_found(
    faber, acme, licence, alice
):
    faber.offers(alice, licence, values())
    names = [f"Ann Person{number:04}" for number in range(500)]
    name_people(acme, names)
    assert len(find_named(acme.tenant, "person")) == 500
    assert len(find_named(acme.tenant, names[4])) == 1
    # Nobody of them is found by the name, by what it begins with, or beside our own.
    for text in ("an", "pe", "person", "person00", *names[::100]):
        ours = [ANN] if text == "an" else []
        assert found(faber, text) == ours, text
    # And with the key of ours no digest of theirs can be made.
    ours = name_search.key_of(faber.tenant.pk)
    made = {one for name in names for one in digests_of(ours, beginnings_of(name))}
    theirs = NameDigests.objects.filter(tenant=acme.tenant)
    assert not made & {one for row in theirs for one in row.digests}


def test_names_are_found_by_keys_that_may_read_values(faber, licence, alice):
    faber.offers(alice, licence, values())
    blind = set(Scope.values) - {Scope.VALUES}
    _, token = ApiKey.issue("access_token", faber.tenant, "A", scopes=sorted(blind))
    reader = Api(token, faber.made.subscription_key)
    error = error_of(reader.get, "/credentials", recipientName="ann")
    assert_error(error, 403, "missing_scope")


@pytest.mark.parametrize("text", ["a", "?", "' '", "a b c", "é", "x" * 201])
def test_a_search_that_is_too_short_or_too_long_is_refused(faber, text):
    error = error_of(faber.get, "/credentials", recipientName=quote(text))
    assert_error(error, 400, "invalid_request")
    assert list(error.body["errors"]) == ["recipientName"]


def test_a_name_of_many_words_has_a_bounded_number_of_digests():
    name = " ".join(f"{n:03}word" + "x" * 20 for n in range(100))
    assert len(beginnings_of(name)) <= 20 * 9
    assert beginnings_of("\u202eA\u0000\ud800 é 1") == []


def test_a_holder_is_not_asked_whose_a_credential_is(faber, licence, alice):
    alice.receives(faber, licence, values())
    assert len(alice.get("/credentials", recipientName="nobody")) == 1
    paths = faber.client.get("/openapi.json").json()["paths"]
    [listing] = [
        found["get"]
        for found in paths.values()
        if found.get("get", {}).get("operationId") == "listWalletCredentials"
    ]
    assert "recipientName" not in str(listing["parameters"])


def test_it_can_be_switched_off_and_on(faber, licence, alice):
    faber.offers(alice, licence, values())
    Tenant.objects.update(name_search=False)
    error = error_of(faber.get, "/credentials", recipientName="ann")
    assert_error(error, 409, "name_search_off")
    keep_name_search()
    assert not NameDigests.objects.exists()
    faber.offers(alice, licence, values("Off Olga"))
    assert not NameDigests.objects.exists()
    Tenant.objects.update(name_search=True)
    keep_name_search()
    assert found(faber, "ann") == [ANN] and found(faber, "olga") == ["Off Olga"]


def test_names_of_before_are_filled_in(faber, licence, alice):
    for number in range(3):
        faber.offers(alice, licence, values(f"Ann {number}{number}"))
    faber.offers(alice, licence)
    NameDigests.objects.all().delete()
    NameKey.objects.all().delete()
    name_search.forget_keys()
    keep_name_search()
    assert NameDigests.objects.count() == 3
    NameDigests.objects.all().delete()
    keep_name_search()
    assert not NameDigests.objects.exists(), "it was filled"
    call_command("fill_name_search", "--again")
    assert NameDigests.objects.count() == 3


class Batches(BatchBudget):
    def __init__(self, left):
        self.left = left


def begin_anew():
    """As where names were stored before there were digests."""
    NameDigests.objects.all().delete()
    name_filling.begin_again(NameKey.objects.all())


def test_one_organization_that_fails_stops_no_other(faber, acme, licence, alice):
    faber.offers(alice, licence, values())
    theirs = acme.defines("name", "year", **NAMED)
    acme.offers(acme.hosts(), theirs, values("Cleo Acker"))
    begin_anew()
    name_search.forget_keys()
    broken = NameKey.objects.filter(tenant=faber.tenant)
    key = bytes(broken.get().key)
    broken.update(key=b"not sealed by its data key, as after a damage")
    with pytest.raises(CommandError, match=str(faber.tenant.pk)):
        call_command("fill_name_search")
    assert found(acme, "cleo") == ["Cleo Acker"]
    assert not NameDigests.objects.filter(tenant=faber.tenant).exists()
    broken.update(key=key)
    keep_name_search()
    assert found(faber, "ann") == [ANN]


def test_organizations_are_filled_in_turns(faber, acme, licence, alice, monkeypatch):
    theirs, bob = acme.defines("name", "year", **NAMED), acme.hosts()
    for number in range(3):
        faber.offers(alice, licence, values(f"Ann {number}"))
        acme.offers(bob, theirs, values(f"Cleo {number}"))
    begin_anew()
    monkeypatch.setattr(name_filling, "AT_ONCE", 1)
    monkeypatch.setattr(name_filling, "TimeBudget", lambda seconds: Batches(4))
    keep_name_search()
    assert len(found(faber, "ann")) == len(found(acme, "cleo")) == 2


def test_switched_off_and_soon_on_again_nobody_is_left_out(faber, licence, alice):
    keep_name_search()
    for is_on in (False, True):
        change_organization(faber.tenant, {"name_search": is_on}, audit.SYSTEM)
        if not is_on:
            faber.offers(alice, licence, values())
    keep_name_search()
    assert found(faber, "ann") == [ANN]


def test_again_deletes_what_a_former_version_has_left(faber, licence, alice):
    faber.offers(alice, licence, values())
    Credential.objects.update(recipient_name=None)
    call_command("fill_name_search", "--again")
    assert not NameDigests.objects.exists()


def test_the_order_of_digests_says_nothing():
    digests = digests_of(b"k" * 32, beginnings_of(ANN))
    assert digests == sorted(digests)


def test_who_deletes_names_makes_the_key_that_the_filling_waits_for(
    faber, licence, alice
):
    alice.receives(faber, licence, values())
    NameKey.objects.all().delete()
    Tenant.objects.update(values_kept_days=30)
    Credential.objects.update(updated_at=F("updated_at") - timedelta(days=40))
    assert delete_old_exchanges() == 1
    assert NameKey.objects.filter(tenant=faber.tenant).exists()


def test_digests_go_with_the_name_and_with_the_credential(faber, licence, alice):
    offered = faber.offers(alice, licence, values("Eva Erst"))
    faber.delete(f"/credentials/delete/{offered['credentialId']}")
    assert not NameDigests.objects.exists()
    alice.receives(faber, licence, values())
    assert found(faber, "ann") == [ANN]
    Tenant.objects.update(values_kept_days=30)
    Credential.objects.update(updated_at=F("updated_at") - timedelta(days=40))
    assert delete_old_exchanges() == 1
    assert not NameDigests.objects.exists()


OTHER_INDEXES = """
SELECT indexrelid::regclass::text FROM pg_index
WHERE indrelid = 'credentials_namedigests'::regclass AND NOT indisprimary
AND indexrelid <> 'credential_by_name_digest'::regclass
"""


def test_a_search_reads_an_index(faber, licence, alice):
    faber.offers(alice, licence, values())
    # A table of one row is read in any way: whether it can be read by this index?
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute(OTHER_INDEXES)
        for [index] in cursor.fetchall():
            cursor.execute(f"DROP INDEX {index}")
        query, parameters = find_named(faber.tenant, "ann").query.sql_with_params()
        cursor.execute(f"EXPLAIN {query}", parameters)
        plan = "\n".join(line for [line] in cursor.fetchall())
        transaction.set_rollback(True)
    assert "credential_by_name_digest" in plan, plan
