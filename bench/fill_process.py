"""A process of bench/fill.py with its own database: `python -m bench.fill_process`.

    fill ROWS ORGANIZATIONS PEOPLE
                              makes the rows, prints their bytes, a caller and addresses
                              of pages as JSON
    calls CALLER              like a web process: measures calls of the API
    people PAGES              like a web process: measures pages of the studio
    workers                   like a worker: measures what workers run every few seconds

All but `fill` print `[[name, milliseconds, milliseconds of SQL], ...]` for each
line that they read.
"""

import gc
import itertools
import json
import sys
import time
from contextlib import contextmanager

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction


def fill_rows(rows, organizations, people):
    call_command("migrate", verbosity=0)
    from bench import deliveries, many_rows
    from bench.queries import InProcess

    caller = InProcess().prepare()
    deliveries.register(caller.tenant, "https://office.example")
    caller.cycle()
    before = database_bytes()
    many_rows.fill_tables(caller, int(rows), int(organizations))
    made = {name: getattr(caller, name) for name in ("headers", "wallet", "definition")}
    pages = make_people(caller, int(people)) if int(people) else None
    filled = database_bytes() - before
    print(json.dumps({"bytes": filled, "caller": made, "pages": pages}))


def make_people(caller, number):
    """Return the pages with these people, and the id of a member who opens them."""
    from django.contrib.auth.models import User

    from bench.calls import VALUES
    from bench.fill_calls import ASKED
    from bench.people import fill_people
    from tenants.models import Membership

    caller.post("/messages", {"connectionId": caller.connection, "text": "Hello"})
    offer = {"definitionId": caller.definition, "credentialValues": VALUES}
    caller.post("/credentials", offer)
    caller.post("/verificationPolicies", ASKED)
    pages = fill_people(caller.tenant, number)
    member = User.objects.create_user("member", "member@example.org")
    Membership.objects.create(tenant=caller.tenant, user=member)
    return pages._asdict() | {"member": member.pk}


def database_bytes():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return cursor.fetchone()[0]


def answer_calls(given):
    from bench.queries import InProcess

    caller = InProcess.resume(**json.loads(given))
    prepare_lists(caller)
    revocable = define_revocable(caller)
    answer_lines(lambda: timed_calls(caller, revocable))


def prepare_lists(caller):
    """Make 100 connections, credentials and verifications that can be opened.

    And 100 offers by a link. Lists begin with the newest. The sealed columns of the many
    copies can not be opened.
    """
    from bench import lists
    from bench.calls import VALUES
    from connections.models import Connection
    from credentials.models import Credential
    from verifications.models import Verification

    for _ in itertools.chain(caller.connection_steps(), caller.steps()):
        pass
    met = Connection.objects.get(connection_id=caller.connection)
    issued = Credential.objects.get(connection=met)
    lists.fill(met, issued, Verification.objects.get(connection=met))
    offer = {"definitionId": caller.definition, "credentialValues": VALUES}
    made = caller.post("/credentials", offer)
    offered = Credential.objects.get(pk=made["credentialId"])
    lists.fill(offered.connection, offered)


def define_revocable(caller):
    """Return the id of a revocable definition, whose first registry has 64 places."""
    from bench.calls import VALUES
    from wallets import key_generator

    key_generator.make_key()
    return caller.defines(*VALUES, supportRevocation=True)["definitionId"]


def timed_calls(caller, revocable):
    from bench.fill_calls import other_calls

    steps = itertools.chain(
        caller.connection_steps(),
        caller.steps(),
        caller.make(other_calls(caller.pair, revocable)),
    )
    while True:
        with time_block() as spent:
            step = next(steps, None)
        if step is None:
            return
        if step[0]:
            yield step[0], *spent


def answer_pages(given):
    from django.contrib.auth.models import User
    from django.test import Client

    from bench.people import second_page

    pages = json.loads(given)
    turns = {name: itertools.cycle(one) for name, one in pages["persons"].items()}
    turns |= {name: itertools.repeat(one) for name, one in pages["lists"].items()}
    client = Client(SERVER_NAME="127.0.0.1", headers={"Accept": "text/html"})
    client.force_login(
        User.objects.get(pk=pages["member"]),
        backend=settings.AUTHENTICATION_BACKENDS[0],
    )

    def measure():
        for name, addresses in list(turns.items()):
            address = next(addresses)
            with time_block() as spent:
                response = client.get(address)
            if response.status_code != 200:
                raise RuntimeError(f"{address}: {response.status_code}")
            following = second_page(address, response.text)
            if following and "page 2" not in name:
                turns.setdefault(f"{name}, page 2", itertools.repeat(following))
            yield name, *spent

    answer_lines(measure)


def answer_workers():
    from bench.worker_statements import WORK

    def measure():
        for name, work in WORK.items():
            with time_block() as spent, transaction.atomic():
                work()
                transaction.set_rollback(True)
            yield name, *spent

    answer_lines(measure)


def answer_lines(measure):
    list(measure())  # warms up
    # Collected between the rounds: else it always takes place in the same call.
    gc.disable()
    print("ready", flush=True)
    for _ in sys.stdin:
        gc.collect()
        print(json.dumps(list(measure())), flush=True)


@contextmanager
def time_block():
    """Yield a list that becomes [milliseconds, milliseconds of SQL]."""
    spent, sql = [], []

    def time_statement(execute, *given):
        started = time.perf_counter()
        try:
            return execute(*given)
        finally:
            sql.append(time.perf_counter() - started)

    started = time.perf_counter()
    with connection.execute_wrapper(time_statement):
        yield spent
    spent += [1000 * (time.perf_counter() - started), 1000 * sum(sql)]


if __name__ == "__main__":
    django.setup()
    command, *arguments = sys.argv[1:]
    if command in ("calls", "people"):
        from core.database.prepared_statements import prepare_statements

        prepare_statements()
    # A statement may take long without an index: that is what is measured.
    settings.DATABASES["default"]["OPTIONS"]["options"] += " -c statement_timeout=0"
    {
        "fill": fill_rows,
        "calls": answer_calls,
        "people": answer_pages,
        "workers": answer_workers,
    }[command](*arguments)
