"""The state of an object as steps: those behind it, the current one, those to come."""

from dataclasses import dataclass
from typing import Any

from agency.studio.objects import label_of
from connections.models import Connection
from credentials.models import Credential
from verifications.models import Verification

C, D, V = Connection.State, Credential.State, Verification.State


@dataclass(frozen=True)
class Step:
    label: str
    is_past: bool = False
    is_current: bool = False


def has_ended(row: Any) -> bool:
    """Whether the object has reached a state in which nothing more is waited for.

    A multi-party invitation never changes. An issued credential may be revoked, days
    later.
    """
    if row.OBJECT_TYPE == "connection":
        return row.multi_party or bool(row.problem) or row.state == C.CONNECTED
    if row.OBJECT_TYPE == "verification" and row.awaits_peer:
        return False  # the prover waits for the verdict
    return row.state not in row.OPEN


def steps_of(row: Any) -> list[Step]:
    labels = labels_of(row)
    current = labels.index(label_of(row))
    return [
        Step(label, is_past=number < current, is_current=number == current)
        for number, label in enumerate(labels)
    ]


def labels_of(row: Any) -> list[str]:
    """All labels in their order, for the way that this object took."""
    if row.OBJECT_TYPE == "connection":
        labels = labels_of_connection(row)
    elif row.OBJECT_TYPE == "credential":
        labels = labels_of_credential(row)
    else:
        labels = labels_of_verification(row)
    return [str(label) for label in labels]


def labels_of_connection(row: Connection) -> list[str]:
    if row.multi_party:
        return [C.INVITED]
    ended = ["Ended"] if row.left_at else []
    return [C.INVITED, C.NEGOTIATING, C.CONNECTED, *ended]


def labels_of_credential(row: Credential) -> list[str]:
    proposed = [D.PROPOSED] if row.proposal is not None else []
    if row.state == D.REJECTED:
        offered = [D.OFFERED] if row.offer_body is not None else []
        requested = [D.REQUESTED] if row.accepted_at else []
        return [*proposed, *offered, *requested, D.REJECTED]
    revoked = [D.REVOKED] if row.state == D.REVOKED else []
    return [*proposed, D.OFFERED, D.REQUESTED, D.ISSUED, *revoked]


def labels_of_verification(row: Verification) -> list[str]:
    is_proposed = row.proposal is not None or row.state == V.PROPOSED
    proposed = [V.PROPOSED] if is_proposed else []
    if row.state == V.REJECTED:
        requested = [V.REQUESTED] if row.request_body is not None else []
        return [*proposed, *requested, V.REJECTED]
    steps = [*proposed, V.REQUESTED]
    if row.is_valid is None:
        return [*steps, V.ACCEPTED]
    verdict = label_of(row)
    if row.role == Verification.Role.PROVER:
        return [*steps, V.ACCEPTED, verdict]
    return [*steps, verdict]
