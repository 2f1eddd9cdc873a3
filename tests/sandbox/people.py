"""Simulated holders in tests, and the worker that lets them answer."""

from sandbox import answering
from sandbox.models import SimulatedAnswer

VALUES = {"name": "Rex", "age": "28"}
LONG_AGO = "2026-01-01T00:00Z"


def simulates(organization, behaviour="accept", **body):
    body = {"name": "Rex", "behaviour": behaviour} | body
    return organization.post("/sandbox/holders", body)


def offers(organization, holder, definition=None, **body):
    """Offer a credential that is issued as soon as it is accepted."""
    definition = definition or organization.defines(*VALUES)
    body = {
        "definitionId": definition["definitionId"], "credentialValues": VALUES,
        "connectionId": holder["connectionId"], "automaticIssuance": True,
    } | body  # fmt: skip
    return organization.post("/credentials", body)["credentialId"]


def asks(organization, holder, **policy):
    policy = {"name": "Policy", "version": "1.0"} | policy
    path = f"/verifications/policy/connections/{holder['connectionId']}"
    return organization.post(path, policy)["verificationId"]


def holders_answer():
    """Let the worker give what is due, or waits for its delay or for a lease to end."""
    SimulatedAnswer.objects.filter(status="pending").update(
        lease_until=None, due_at=LONG_AGO
    )
    answering.loop.run()


def read_credential(organization, credential_id):
    return organization.get(f"/credentials/{credential_id}")


def read_verification(organization, verification_id):
    return organization.get(f"/verifications/{verification_id}")


def failed_checks(faber, verification_id):
    """Whether a proof is valid, and what failed, as `{(item, code)}`."""
    found = read_verification(faber, verification_id)
    assert found["state"] == "Accepted"
    failed = [check for check in found["checks"] if check["status"] == "fail"]
    return found["isValid"], {(one.get("policyName"), one["code"]) for one in failed}
