"""The tables of this app."""

from tenants.models.audit import AuditEntry
from tenants.models.erasure import Erasure
from tenants.models.idempotency import IdempotencyKey, IdempotencyLease
from tenants.models.keys import ApiKey, DataKey, FormerDataKey, Scope
from tenants.models.networks import AgreementAcceptance, Network
from tenants.models.notes import NotedRow, Notes
from tenants.models.organizations import Asset, Provider, Tenant
from tenants.models.people import Invitation, Membership, Permission, Role
from tenants.models.record import LiveRows, Record
from tenants.models.requests import LoggedRequest
from tenants.models.usage import DailyUsage

__all__ = [
    "AgreementAcceptance",
    "ApiKey",
    "Asset",
    "AuditEntry",
    "DailyUsage",
    "DataKey",
    "Erasure",
    "FormerDataKey",
    "IdempotencyKey",
    "IdempotencyLease",
    "Invitation",
    "LiveRows",
    "LoggedRequest",
    "Membership",
    "Network",
    "NotedRow",
    "Notes",
    "Permission",
    "Provider",
    "Record",
    "Role",
    "Scope",
    "Tenant",
]
