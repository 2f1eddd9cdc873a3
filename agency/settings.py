"""All settings, from environment variables only.

The comment above each variable is its text in docs/settings.md: `make docs-tables`.
"""

import re
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from core.database.options import connection_options
from core.master_keys import read_master_key
from core.version import API_VERSION, __version__
from core.work.processors import count_processors

BASE_DIR = Path(__file__).resolve().parent.parent
# Where var/ and staticfiles/ are: in the source, or where an installed package runs.
HOME = BASE_DIR if (BASE_DIR / "manage.py").exists() else Path.cwd()
env = environ.FileAwareEnv()

# For developing Agency itself: traceback pages show settings and routes. Never in
# production.
DEBUG = env.bool("DEBUG", default=False)
# Signs sessions and links of mails in the studio.
SECRET_KEY = env.str("SECRET_KEY", default="")
# Former values, comma-separated: what they signed stays valid
# ([keys](operations/keys.md#the-secret-key)).
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
# Base64 of 32 random bytes; wraps the keys that seal the database. Keep a copy apart.
AGENCY_MASTER_KEY = env.str("AGENCY_MASTER_KEY", default="")
# A command that prints it ([keys](operations/keys.md#where-the-master-key-comes-from)).
AGENCY_MASTER_KEY_COMMAND = env.str("AGENCY_MASTER_KEY_COMMAND", default="")
# The master key before, during [a rotation](operations/keys.md#a-new-master-key).
AGENCY_OLD_MASTER_KEY = env.str("AGENCY_OLD_MASTER_KEY", default="")
# A command that prints it.
AGENCY_OLD_MASTER_KEY_COMMAND = env.str("AGENCY_OLD_MASTER_KEY_COMMAND", default="")
# Base64 of 32 random bytes; seals the file by which [an organization
# moves](operations/moving.md). Only its two commands need it.
AGENCY_MOVE_KEY = env.str("AGENCY_MOVE_KEY", default="")
# A command that prints it.
AGENCY_MOVE_KEY_COMMAND = env.str("AGENCY_MOVE_KEY_COMMAND", default="")
# `postgres://user:password@host:port/name`, with [options](#options-of-database_url)
# such as `?sslmode=require`.
DATABASE_URL = env.str("DATABASE_URL", default="")
# Redis or Valkey: Celery's broker, rate limits, and [limits of
# sign-in](operations.md#limits-of-sign-in).
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
# Seconds that `migrate` and other one-off commands wait for a lock
# ([upgrade](operations/upgrade.md#locks)).
DATABASE_LOCK_TIMEOUT = env.float("DATABASE_LOCK_TIMEOUT", default=2.0)
# `manage.py` sets it for these: no time limit of statements, and no pool.
ONE_OFF_COMMAND = env.bool("ONE_OFF_COMMAND", default=False)
# Most database connections of one process: at least twice `WEB_THREADS`.
DATABASE_POOL_SIZE = env.int("DATABASE_POOL_SIZE", default=8)
# Web processes let PostgreSQL prepare repeated statements; 1 behind [a
# pooler](#behind-a-pooler) that keeps them. Default: 1; behind a pooler 0.
DATABASE_PREPARED_STATEMENTS = env.bool("DATABASE_PREPARED_STATEMENTS", default=None)
# Port of the web server.
PORT = env.int("PORT", default=8000)
# [Processes](operations.md#web-processes) that share the port; a limit of a container
# or of systemd (`cpus`, `CPUQuota`) counts like fewer processors. Default: the
# processors.
WEB_PROCESSES = env.int("WEB_PROCESSES", default=count_processors())
# Seconds for which web says that it is not ready, and still answers, between SIGTERM and
# the closing of its port. As long as a load balancer needs to notice.
WEB_STOP_DELAY = env.float("WEB_STOP_DELAY", default=5.0)
# Requests that one web process handles at a time, and as many again with long
# cryptography (definitions, issuing, presenting, verifying); at most half of the former
# can wait (`Prefer: wait`).
WEB_THREADS = env.int("WEB_THREADS", default=4)
# Base of all links, invitations and endpoints. With `https://` cookies are secure,
# responses have HSTS, and behind a trusted proxy http is redirected, but for health and
# metrics. Default: `http://127.0.0.1:PORT`.
PUBLIC_URL = env.str("PUBLIC_URL", default=f"http://127.0.0.1:{PORT}").rstrip("/")
# Port of the event stream process. Default: `PORT` + 1.
STREAM_PORT = env.int("STREAM_PORT", default=PORT + 1)
# Base URL of streams; behind a proxy that routes `/events/stream` there it is
# `PUBLIC_URL`. Default: `PUBLIC_URL`, with `STREAM_PORT` in place of `PORT`.
STREAM_URL = env.str(
    "STREAM_URL",
    default=re.sub(rf":{PORT}$", f":{STREAM_PORT}", PUBLIC_URL),
).rstrip("/")
# Most open streams of one process.
STREAM_LISTENERS = env.int("STREAM_LISTENERS", default=2000)
# Most of them for one organization.
STREAM_LISTENERS_PER_TENANT = env.int("STREAM_LISTENERS_PER_TENANT", default=50)
# URI scheme of deep links into wallet apps.
DEEP_LINK_SCHEME = env.str("DEEP_LINK_SCHEME", default="didcomm")
# Host names that the web server accepts, comma-separated, with those that load
# balancers and Prometheus use.
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
# Origins, as `https://app.example`, whose pages may call the API from a browser,
# comma-separated; `*`: all. Whoever opens such a page can read its keys. Links, the
# ledger, tails and health can be read from every origin.
CORS_ORIGINS = env.list("CORS_ORIGINS", default=[])
# 1: static files come from the installed packages. 0: from `staticfiles/`, where
# `collectstatic` puts them.
STATIC_USE_FINDERS = env.bool("STATIC_USE_FINDERS", default=False)
# Folder for public files, shared by all processes. Default: `var/storage`.
STORAGE_ROOT = env.str("STORAGE_ROOT", default=str(HOME / "var" / "storage"))
# Class of another storage for them, as `storages.backends.s3.S3Storage` (`pip install
# django-storages[s3]`). Each host then keeps copies of tails files that it proves with,
# below `TMPDIR`.
STORAGE_BACKEND = env.str("STORAGE_BACKEND", default="")
# Its options as JSON: `{"bucket_name": "agency", "querystring_auth": false}`.
STORAGE_OPTIONS = env.json("STORAGE_OPTIONS", default={})
# `json` or `text`.
LOG_FORMAT = env.str("LOG_FORMAT", default="json")
# Level of the product's own log lines.
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
# Kinds of processes that are [reported when missing](operations/runbook.md#heartbeats).
# Leave out what you do not run.
EXPECTED_PROCESSES = env.list(
    "EXPECTED_PROCESSES", default=["web", "stream", "worker", "deliver", "beat"]
)
# Bearer token with which Prometheus reads `/metrics`; without it there is no such page.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
# Where to report a weakness of this installation: `mailto:`, `https://` or `tel:`
# addresses, comma-separated, the preferred one first. Served at
# `/.well-known/security.txt`.
SECURITY_CONTACT = env.list("SECURITY_CONTACT", default=[])
# Local folder for the Prometheus counters of the processes of one host. Default:
# `var/metrics`.
METRICS_ROOT = env.str("METRICS_ROOT", default=str(HOME / "var" / "metrics"))
# 1: `GET /tenants/{id}/keys` of the provider API shows keys again; they are stored
# sealed. 0: PATCH shows them once.
PROVIDER_KEYS_READABLE = env.bool("PROVIDER_KEYS_READABLE", default=True)
# Regions that the provider API lists: `Name=Text`, comma-separated.
REGIONS = env.dict("REGIONS", default={"UnitedStates": "United States"})
# 0: only staff create people, apart from invitations, and let them [create
# organizations](team.md#members-and-roles).
STUDIO_SIGN_UP = env.bool("STUDIO_SIGN_UP", default=True)
# Prefixes below which the subscription key is optional, comma-separated; `/`:
# everywhere.
SUBSCRIPTION_KEY_OPTIONAL = tuple(
    f"/{prefix.strip('/')}/".replace("//", "/")
    for prefix in env.list(
        "SUBSCRIPTION_KEY_OPTIONAL", default=["/credentials/v1", "/wallet/v1"]
    )
)
# Ids that programs of the original service send for networks here:
# `sovrin-staging=local,bcovrin-test=local`.
NETWORK_ALIASES = env.dict("NETWORK_ALIASES", default={})
# Keys of definitions made in advance; with 0 every definition waits for its key.
SPARE_KEYS = env.int("SPARE_KEYS", default=4)
# Definitions that one organization may make in a minute, six times as many under
# `/agency/v1` and `/credentials/v1`, whose clients give up at a 429; 0: any number.
DEFINITIONS_A_MINUTE = env.int("DEFINITIONS_A_MINUTE", default=10)
# Definitions that it may make in a day, deleted ones included; 0: any number.
DEFINITIONS_A_DAY = env.int("DEFINITIONS_A_DAY", default=100)
# Places of a definition's first revocation registry, made in the call.
REVOCATION_FIRST_REGISTRY_SIZE = env.int("REVOCATION_FIRST_REGISTRY_SIZE", default=64)
# Places of the later ones, made by the worker in advance.
REVOCATION_REGISTRY_SIZE = env.int("REVOCATION_REGISTRY_SIZE", default=1000)
# Public DIDs resolved in a minute for callers of one organization, and as many for
# strangers that send it messages; one resolved in the last minute does not count; 0:
# any number.
DIDS_PER_MINUTE = env.int("DIDS_PER_MINUTE", default=120)
# Calls in a minute that read did:webvh of others for one organization, and as many for
# what its peers send; 0: any number.
WEBVH_READS_PER_MINUTE = env.int("WEBVH_READS_PER_MINUTE", default=240)
# Ports at which did:webvh of others are read; one without a port is at 443.
WEBVH_PORTS = env.list("WEBVH_PORTS", cast=int, default=[443])
# Requests to connect in a minute to the public DID of one organization, a quarter of
# them from one address or one other organization here; 0: any number.
REQUESTS_PER_DID = env.int("REQUESTS_PER_DID", default=240)
# The same by one invitation from one address, or from the wallets of one other
# organization here: at once, and as many again each minute, evenly.
REQUESTS_PER_INVITATION = env.int("REQUESTS_PER_INVITATION", default=60)
# Seconds that a call waits for a remote ledger, with all reads, writes and keys.
LEDGER_TIMEOUT = env.float("LEDGER_TIMEOUT", default=15.0)
# Most bytes of a tails file, 256 for each place of a registry.
MAX_TAILS_BYTES = env.int("MAX_TAILS_BYTES", default=10 * 1024 * 1024)
# Maximal number of credentials in a revocation registry: its tails file has 256 bytes
# for each.
MAX_PLACES = MAX_TAILS_BYTES // 256
# Most bytes of the body of an API request.
MAX_BODY_BYTES = env.int("MAX_BODY_BYTES", default=256 * 1024)
# Most bytes of [a file of credentials](issue-many.md); a proxy before Agency must let
# it through.
MAX_BULK_BYTES = env.int("MAX_BULK_BYTES", default=10 * 1024 * 1024)
# Most bytes of an uploaded picture.
MAX_IMAGE_BYTES = env.int("MAX_IMAGE_BYTES", default=256 * 1024)
# Most bytes of a DIDComm envelope.
MAX_ENVELOPE_BYTES = env.int("MAX_ENVELOPE_BYTES", default=1024 * 1024)
# Whether outgoing calls may reach this machine.
OUTGOING_ALLOW_LOOPBACK = env.bool("OUTGOING_ALLOW_LOOPBACK", default=False)
# Private networks that outgoing calls may reach, as `10.1.0.0/16`, comma-separated.
OUTGOING_ALLOWED_NETWORKS = env.list(
    "OUTGOING_ALLOWED_NETWORKS", cast=ip_network, default=[]
)
# PEM file of the authorities that outgoing TLS trusts; else Mozilla's list.
OUTGOING_CA_FILE = env.str("OUTGOING_CA_FILE", default="")
# Whether webhooks must have `https://` addresses.
WEBHOOK_REQUIRE_HTTPS = env.bool("WEBHOOK_REQUIRE_HTTPS", default=True)
# Webhook calls that one `deliver` makes at a time, half of them for one organization.
WEBHOOK_THREADS = env.int("WEBHOOK_THREADS", default=64)
# Most calls at a time of [one address](webhooks.md#calls-at-a-time), by all `deliver`.
WEBHOOK_ADDRESS_CALLS = env.int("WEBHOOK_ADDRESS_CALLS", default=64)
# Messages to other agents that it posts at a time; to one endpoint [up to three quarters
# of them](reliability.md#strangers-and-neighbours).
MESSAGE_THREADS = env.int("MESSAGE_THREADS", default=64)
# Days that events and their deliveries are kept; their calls up to a day longer.
EVENT_RETENTION_DAYS = env.int("EVENT_RETENTION_DAYS", default=30)
# Days that messages between agents are kept once done ([what is
# kept](operations/erasure.md)).
MESSAGE_RETENTION_DAYS = env.int("MESSAGE_RETENTION_DAYS", default=30)
# Days of the [log of who changed what](team.md#the-log); 0: for ever.
AUDIT_RETENTION_DAYS = env.int("AUDIT_RETENTION_DAYS", default=400)
# Hours in which the deletion of an organization [by its own
# key](operations/erasure.md#by-its-own-key) can be undone; 0: none.
DELETION_UNDO_HOURS = env.int("DELETION_UNDO_HOURS", default=24)
# API calls [logged](studio.md#request-log) for each organization, the newest, for at
# most 30 days; 0: none, also of those before.
REQUEST_LOG_ROWS = env.int("REQUEST_LOG_ROWS", default=100_000)
# Days of Django's own log of *Changes in the admin*; 0: for ever.
ADMIN_LOG_RETENTION_DAYS = env.int("ADMIN_LOG_RETENTION_DAYS", default=0)
# Hosted wallets of one organization, if its account has [quotas](operations.md#quotas);
# 0 here and below: any number.
QUOTA_WALLETS = env.int("QUOTA_WALLETS", default=1000)
# Its connections and open invitations, without those of the next line.
QUOTA_CONNECTIONS = env.int("QUOTA_CONNECTIONS", default=10_000)
# Its connections that [strangers](operations.md#strangers) began, and with which it did
# nothing yet.
QUOTA_STRANGERS = env.int("QUOTA_STRANGERS", default=2000)
# Its credentials and verifications that are not in a final state.
QUOTA_OPEN_EXCHANGES = env.int("QUOTA_OPEN_EXCHANGES", default=10_000)
# Its credential definitions, deleted ones included.
QUOTA_DEFINITIONS = env.int("QUOTA_DEFINITIONS", default=100)
# Pictures of its account.
QUOTA_PICTURES = env.int("QUOTA_PICTURES", default=100)
# Bytes of these pictures together.
QUOTA_PICTURE_BYTES = env.int("QUOTA_PICTURE_BYTES", default=10 * 1024 * 1024)
# Organizations of one person, made in the studio or with keys of these.
QUOTA_ORGANIZATIONS = env.int("QUOTA_ORGANIZATIONS", default=10)
# Tests only: whether `FAULT_POINT` has an effect.
FAULT_INJECTION = env.bool("FAULT_INJECTION", default=False)
# Tests only: where a process kills itself.
FAULT_POINT = env.str("FAULT_POINT", default="") if FAULT_INJECTION else ""
# `smtp://user:password@host:port`, or `smtp+tls://` for STARTTLS. Without it no mail is
# sent, and pages that need it say so. `consolemail://` prints mail, reset links
# included, to the log.
EMAIL_URL = env.str("EMAIL_URL", default="")
# Whether people follow a link in a mail before their first sign-in. If not, an address
# may have several accounts. Default: 1 with `EMAIL_URL`, else 0.
STUDIO_VERIFY_EMAIL = env.bool("STUDIO_VERIFY_EMAIL", default=bool(EMAIL_URL))
# Whether staff need a [second factor](team.md#second-factors) to open the admin.
STAFF_SECOND_FACTOR = env.bool("STAFF_SECOND_FACTOR", default=True)
# Sender of the studio's mail.
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="agency@localhost")
# Whether organizations may send the [links of their
# offers](issue-many.md#mails-with-the-links) by mail from here, as `DEFAULT_FROM_EMAIL`,
# and holders be [told by mail](web-wallet.md#told-by-mail). Needs `EMAIL_URL`.
ORGANIZATION_MAIL = env.bool("ORGANIZATION_MAIL", default=False)
# Such mails of one organization in a day (UTC); a tenth in its first 24 hours.
ORGANIZATION_MAILS_A_DAY = env.int("ORGANIZATION_MAILS_A_DAY", default=1000)
# 1 behind a proxy that sets `X-Forwarded-Proto`; needed for `https://`, unless the web
# server does TLS itself.
TRUST_PROXY = env.bool("TRUST_PROXY", default=False)
# Number of chained proxies that each add the address of their caller to
# `X-Forwarded-For`. With too small a number [limits of
# sign-in](operations.md#limits-of-sign-in) take all people for one; with too large a
# one, people choose their address. Default: `TRUST_PROXY`.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=int(TRUST_PROXY))
# Envelopes that `/didcomm` accepts from one address (IPv6: /64 network) at once, and as
# many again each minute, evenly; 0: any number.
INBOX_PER_ADDRESS = env.int("INBOX_PER_ADDRESS", default=6000)
# The same from one sender for one key of a wallet (one connection or invitation).
INBOX_PER_RECIPIENT = env.int("INBOX_PER_RECIPIENT", default=1200)

if not DATABASE_URL:
    raise ImproperlyConfigured(
        "DATABASE_URL is not set. Give it as postgres://user:password@host:port/name, "
        "or use `make run`, which starts a database of its own."
    )
if OUTGOING_CA_FILE and not Path(OUTGOING_CA_FILE).is_file():
    raise ImproperlyConfigured(f"OUTGOING_CA_FILE names no file: {OUTGOING_CA_FILE}")
if not all(
    re.fullmatch(r"(mailto:|https://|tel:)[!-~]+", one) for one in SECURITY_CONTACT
):
    raise ImproperlyConfigured(
        "SECURITY_CONTACT takes mailto:, https:// and tel: addresses, separated by "
        "commas."
    )
if max(REVOCATION_FIRST_REGISTRY_SIZE, REVOCATION_REGISTRY_SIZE) > MAX_PLACES:
    raise ImproperlyConfigured(
        "A revocation registry needs 256 bytes of its tails file for each place: give "
        "a smaller REVOCATION_REGISTRY_SIZE or a larger MAX_TAILS_BYTES."
    )
if STUDIO_VERIFY_EMAIL and not EMAIL_URL:
    raise ImproperlyConfigured(
        "STUDIO_VERIFY_EMAIL needs EMAIL_URL: nobody could sign in."
    )
if ORGANIZATION_MAIL and not EMAIL_URL:
    raise ImproperlyConfigured("ORGANIZATION_MAIL needs EMAIL_URL: nothing is sent.")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Make one with: python -c 'import secrets; "
        "print(secrets.token_urlsafe(50))'"
    )
MASTER_KEY: bytes = (
    read_master_key("AGENCY_MASTER_KEY", AGENCY_MASTER_KEY, AGENCY_MASTER_KEY_COMMAND)
    or b""
)
if not MASTER_KEY:
    raise ImproperlyConfigured(
        "AGENCY_MASTER_KEY is not set. Make a key, once, and keep it safe: python -c "
        "'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"
    )
OLD_MASTER_KEY = read_master_key(
    "AGENCY_OLD_MASTER_KEY", AGENCY_OLD_MASTER_KEY, AGENCY_OLD_MASTER_KEY_COMMAND
)

# The ids of the objects that `manage.py demo` created, for the examples in /docs.
DEMO_FILE = HOME / "var" / "demo.json"

INSTALLED_APPS = [
    # Before Django's: of two translations of a text, that of the first app is used.
    "agency.words",
    "agency.holders.links",
    "agency.holders.wallet",
    "agency.mails",
    "agency.support.apps.SupportAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "corsheaders",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "agency.studio.accounts.apps.SessionsConfig",
    "django_htmx",
    "template_partials",
    "agency.support.apps.SupportConfig",
    "agency.ops",
    "agency.devtools",
    "tenants",
    "wallets",
    "webhooks",
    "connections",
    "credentials",
    "verifications",
    "sandbox",
    "tenants.lifecycle",
    "agency",  # the last one: it ends what holds until all are loaded
]

# For pages; the first one lets calls of the API go through API_MIDDLEWARE instead.
MIDDLEWARE = [
    "agency.server.middleware.ChainByPath",
    "agency.server.middleware.begin_request",
    "agency.server.cors.Middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "agency.server.middleware.no_store",
    "agency.server.middleware.content_security_policy",
    "agency.server.middleware.bounded_body",
    "agency.server.middleware.DatabaseOutage",
    "agency.server.middleware.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
# The same without sessions, CSRF tokens, users, messages and static files.
API_MIDDLEWARE = [
    "agency.server.middleware.begin_request",
    "agency.server.cors.APIMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "agency.server.middleware.no_store",
    "agency.server.middleware.content_security_policy",
    "agency.server.middleware.bounded_body",
    "agency.server.middleware.DatabaseOutage",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

# See agency/server/cors.py. The API authenticates by headers, never by cookies, so
# CORS credentials stay forbidden (the default).
CORS_ALLOW_ALL_ORIGINS = "*" in CORS_ORIGINS
CORS_ALLOWED_ORIGINS = (
    [] if CORS_ALLOW_ALL_ORIGINS else [one.rstrip("/") for one in CORS_ORIGINS]
)
CORS_ALLOW_HEADERS = [
    "Authorization",
    "DPoP",
    "X-Service-Subscription-Key",
    "X-Streetcred-Subscription-Key",
    "X-Trinsic-Subscription-Key",
    "X-Streetcred-Tenant-Id",
    "X-Scrd-Api-Key",
    "XStreetcredSubscriptionKey",
    "Accept",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "Last-Event-ID",
    "Prefer",
    "X-Agency-Api-Version",
    "X-Ms-Command-Name",  # sent by the original npm clients in browsers
    "X-Request-Id",
]
CORS_EXPOSE_HEADERS = [
    "Deprecation",
    "ETag",
    "Idempotency-Replayed",
    "Link",
    "Preference-Applied",
    "Retry-After",
    "WWW-Authenticate",
    "X-Agency-Api-Version",
    "X-Ignored-Members",
    "X-Ignored-Parameters",
    "X-Request-Id",
]

ROOT_URLCONF = "agency.urls"
WSGI_APPLICATION = "agency.wsgi.application"
APPEND_SLASH = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "agency" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agency.studio.menu.menu_context",
                "agency.studio.pages.member_context",
            ],
            "builtins": ["agency.studio.objects"],
        },
    },
]

DATABASES = {"default": env.db_url_config(DATABASE_URL)}
if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured(
        "DATABASE_URL must name a PostgreSQL database (postgres://…)."
    )
DATABASES["default"]["ENGINE"] = "core.database"
try:
    DATABASES["default"]["OPTIONS"] = connection_options(
        DATABASES["default"].get("OPTIONS", {}),
        lock_timeout=round(DATABASE_LOCK_TIMEOUT * 1000) if ONE_OFF_COMMAND else None,
    )
except ValueError as error:
    raise ImproperlyConfigured(
        f"DATABASE_URL: {error}. See the options of libpq."
    ) from None
# A one-off command has one connection, and reports at once why it cannot be opened.
if not ONE_OFF_COMMAND:
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 10,
        # With a longer timeout, the pool increases its delay between attempts while
        # PostgreSQL is out of reach, and blocks all other attempts meanwhile.
        "reconnect_timeout": 1,
    }
# Check a connection before it is lent.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# A cursor on the server belongs to a session.
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True

# In the same Redis database as the broker (REDIS_URL). Only allauth's rate limits use
# it.
CACHES = {
    "default": {
        "BACKEND": "core.valkey.cache.SharedCache",
        "KEY_PREFIX": "agency:cache",
    }
}

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # no limit; the default is 100
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A lost notification delays work by seconds only, because beat sends it again.
    # With acknowledgements a long task would run twice, and workers would end when the
    # broker ends (kombu 5.7, `restore_unacked`).
    "ack_emulation": False,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "max_retries": 0,  # otherwise notifying workers takes 6 s while the broker is down
}
CELERY_TASK_ROUTES = {  # outgoing calls have worker processes of their own
    "webhooks.tasks.deliver": {"queue": "webhooks"},
    "connections.tasks.deliver": {"queue": "messages"},
}
CELERY_BEAT_SCHEDULER = "agency.ops.beat:Scheduler"
# Beat answers `celery inspect ping` while it sends tasks, and stops answering after 60
# silent seconds.
CELERY_BEAT_ENABLE_REMOTE_CONTROL = True
CELERY_BEAT_MAX_LOOP_INTERVAL = 5.0  # seconds
# How often beat sends each periodic task, in seconds.
PERIODIC_TASKS = {
    "connections.tasks.sweep": 5,
    "connections.tasks.deliver": 5,
    "connections.tasks.end_expired_links": 30,
    "webhooks.tasks.deliver": 5,
    "webhooks.tasks.maintain": 5,
    "agency.mails.tasks.send_webhook_notices": 30,
    "agency.mails.tasks.send_mailings": 5,
    "agency.mails.tasks.mail_holders": 60,
    "webhooks.tasks.delete_old_events": 60,
    "connections.tasks.forget_messages": 60,
    "tenants.tasks.delete_old_sessions_and_pictures": 3600,
    "tenants.lifecycle.tasks.count_usage": 900,
    "tenants.lifecycle.tasks.erase": 5,
    "tenants.lifecycle.tasks.delete_old_exchanges": 3600,
    "tenants.tasks.delete_old_audit_entries": 3600,
    "tenants.tasks.delete_old_requests": 60,
    "tenants.tasks.delete_retired_data_keys": 3600,
    "connections.tasks.forget_old_answers": 3600,
    "agency.holders.links.tasks.forget_closed_links": 3600,
    "agency.holders.wallet.tasks.forget_ended_sessions": 3600,
    "agency.ops.tasks.forget_processes": 3600,
    "agency.ops.tasks.fold_status_lists": 3600,
    "credentials.tasks.publish_on_ledgers": 5,
    "credentials.tasks.delete_copied_lists": 3600,
    "credentials.tasks.ask_issuers": 5,
    "credentials.tasks.issue_bulks": 5,
    "sandbox.tasks.answer_exchanges": 5,
    "verifications.tasks.judge_answers": 5,
    "sandbox.tasks.delete_old_data": 3600,
    "credentials.tasks.delete_old_bulks": 3600,
    "credentials.tasks.keep_name_search": 30,
    "credentials.tasks.delete_spent_nonces": 600,
    "wallets.tasks.renew_certificates": 3600,
    "credentials.tasks.build_registries": 10,
    "credentials.tasks.rotate_webvh_keys": 10,
    "tenants.tasks.delete_old_idempotency_keys": 600,
    "credentials.tasks.finish_what_was_left_behind": 30,
    "wallets.tasks.fill_key_pool": 30,
}
CELERY_BEAT_SCHEDULE = {
    name: {
        "task": name,
        "schedule": float(seconds),
        # What is sent more often than that is dropped (agency/ops/periodic_runs.py).
        "options": {"headers": {"agency_every": seconds}},
    }
    for name, seconds in PERIODIC_TASKS.items()
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["core.api.authentication.TenantAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["core.api.negotiation.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.api.negotiation.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "core.api.negotiation.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "core.api.exceptions.exception_handler",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Agency",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.1",
    "EXTENSIONS_INFO": {"x-api-version": API_VERSION},
    "SERVERS": [{"url": PUBLIC_URL}],
    "DESCRIPTION": "A cloud agency for verifiable credentials: wallets, connections, "
    "credentials, verifications.\n\nMembers of a body and parameters of a list that "
    "are not known are ignored; the headers `X-Ignored-Members` and "
    "`X-Ignored-Parameters` of the answer name them.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "PATH_CONVERTER_OVERRIDES": {"object_id": str},
    "GET_LIB_DOC_EXCLUDES": "core.api.openapi.schema.base_classes",
    "PREPROCESSING_HOOKS": ["core.api.openapi.schema.one_path_each"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "core.api.openapi.schema.share_enums",
        "core.api.openapi.schema.add_errors",
        "webhooks.api.event_bodies.add_webhooks",
        "core.api.openapi.schema.add_descriptions",
        "core.api.openapi.schema.name_differences",
    ],
    "ENUM_SUFFIX": "",
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_NAME_OVERRIDES": {
        "ConnectionState": "connections.models.Connection.State",
        "CredentialState": "credentials.models.Credential.State",
        "Behaviour": "sandbox.api.holders.BEHAVIOURS",
        "BulkState": "credentials.api.bulk.STATES",
        "MailingState": "agency.mails.api.STATES",
        "VerificationState": "verifications.models.Verification.State",
        "ClaimType": "credentials.api.serializers.CLAIM_TYPES",
        "CredentialFormat": "credentials.api.serializers.CREDENTIAL_FORMATS",
        "PredicateType": "verifications.api.serializers.PREDICATES",
        "DerivedPredicateType": "credentials.api.serializers.DERIVED_PREDICATES",
        "EndorserType": "tenants.models.Tenant.Endorser",
        "AttachmentFormat": "connections.api.serializers.FORMATS",
        "ChosenAttachmentFormat": "connections.api.protocols.ATTACHMENT_FORMATS",
        "ChosenVersion": "connections.api.protocols.EXCHANGE_VERSIONS",
        "ExchangeVersion": "connections.api.serializers.VERSIONS",
        "InvitationProtocol": "connections.api.serializers.PROTOCOLS",
        "LinkProtocol": "connections.api.serializers.LINK_PROTOCOLS",
        "Handshake": "connections.protocols.out_of_band.HANDSHAKE_VERSIONS",
        "RequestProtocol": "verifications.api.serializers.REQUEST_PROTOCOLS",
        "KioskProtocol": "verifications.api.kiosks.PROTOCOLS",
        "MessageDirection": "connections.models.BasicMessage.Direction",
        "MessageType": "webhooks.api.serializers.MESSAGE_TYPES",
        "WebhookType": "webhooks.api.serializers.TYPES",
        "TrialReason": "verifications.api.lab.TRIAL_REASONS",
        "DeliveryStatus": "webhooks.api.serializers.STATUSES",
    },
}

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "agency.studio.accounts.sign_in.Backend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
# Sign-up must not disclose whether an address is registered. If addresses are
# verified, every sign-up leads to the same page, and the rest is in a mail. Otherwise
# every sign-up creates an account, so one address may have several accounts: nobody
# has proven to own it.
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if STUDIO_VERIFY_EMAIL else "none"
ACCOUNT_PREVENT_ENUMERATION = "strict"
ACCOUNT_FORMS = {
    "signup": "agency.studio.accounts.sign_up.SignUpForm",
    "add_email": "agency.studio.accounts.sign_up.AddAddressForm",
    "change_password": "agency.studio.accounts.passwords.ChangePasswordForm",
    "reset_password_from_key": "agency.studio.accounts.passwords.ResetPasswordKeyForm",
}
ACCOUNT_ADAPTER = "agency.studio.accounts.adapter.AccountAdapter"
# In addition to allauth's defaults. The key of login_failed is account and IP address,
# so that nobody can lock out the owner from another IP address. It comes first:
# attempts that it refuses do not count for the IP address, which others may share.
ACCOUNT_RATE_LIMITS = {
    "login": "60/m/ip",
    "login_failed": "5/5m/key,20/m/ip,100/h/ip",
    "reset_password": "5/10m/key,20/m/ip",  # key: the mailbox
}
# A mail about each change of a password, an address or a second factor.
ACCOUNT_EMAIL_NOTIFICATIONS = bool(EMAIL_URL)
MFA_ADAPTER = "agency.studio.accounts.second_factor.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_TOLERANCE = 1  # codes of the 30 seconds before and after count too
# Where nobody confirms an address, a second factor cannot wait for that.
MFA_ALLOW_UNVERIFIED_EMAIL = not STUDIO_VERIFY_EMAIL
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/studio/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/"
EMAIL_TIMEOUT = 15  # seconds; a mail server that hangs blocks a worker's thread
# EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD and so on.
vars().update(env.email_url_config(EMAIL_URL or "dummymail://"))

STATIC_URL = "/static/"
# None, so that STATIC_USE_FINDERS does not serve files of an earlier collectstatic.
STATIC_ROOT = None if STATIC_USE_FINDERS else HOME / "staticfiles"
STORAGES = {
    "default": {
        "BACKEND": STORAGE_BACKEND or "core.storage.DurableStorage",
        "OPTIONS": STORAGE_OPTIONS if STORAGE_BACKEND else {"location": STORAGE_ROOT},
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if STATIC_USE_FINDERS
        else "agency.server.static_files.CollectedFilesStorage",
    },
}
WHITENOISE_USE_FINDERS = STATIC_USE_FINDERS

LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "core.text.formats"
TIME_ZONE = "UTC"
USE_TZ = True

SECURE = PUBLIC_URL.startswith("https://")
# Not Django's `sessionid`: the list of a person's sessions lacks those that older
# versions began, so nobody could end them.
SESSION_COOKIE_NAME = "agency_session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SESSION_COOKIE_AGE = 8 * 3600
SESSION_SAVE_EVERY_REQUEST = True
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "agency.holders.wallet.pages.csrf_failure"
SECURE_HSTS_SECONDS = 31536000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Only with a trusted proxy: without one every request looks like http, and a proxy
# with TLS would cause endless redirects. agency.W011 warns about it.
SECURE_SSL_REDIRECT = SECURE and TRUST_PROXY
SECURE_SSL_HOST = urlsplit(PUBLIC_URL).netloc
# Paths that load balancers and Prometheus request without TLS. /api/health and
# /custodian/v1/api/health are not among them: only clients of the API call those.
SECURE_REDIRECT_EXEMPT = [
    r"^([a-z]+/v1/|custodian/)?health$",
    r"^health/(ready|status)$",
    r"^metrics$",
]
SILENCED_SYSTEM_CHECKS = [
    "security.W008",  # no SECURE_SSL_REDIRECT: agency.W011 says when that is wrong
    # SECURE_HSTS_PRELOAD is a decision of the owner of the whole domain.
    "security.W021",
]
DATA_UPLOAD_MAX_MEMORY_SIZE = None  # limited by agency.server.middleware.bounded_body
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2500  # the largest page: a policy with samples

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "core.telemetry.logs.RequestIdFilter"},
        "route": {"()": "core.telemetry.logs.RouteFilter"},
    },
    "formatters": {
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s %(request_id)s",
            "rename_fields": {
                "asctime": "time",
                "levelname": "level",
                "name": "logger",
            },
            "static_fields": {"version": __version__},
        },
        "text": {
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"
        },
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["request_id", "route"],
        },
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        # Without Django's own handlers, which print each line a second time, without
        # filters.
        "django": {"handlers": [], "level": "WARNING"},
        "django.server": {"level": "CRITICAL"},  # its lines contain addresses
    }
    | {
        name: {"level": LOG_LEVEL}
        for name in (
            "core",
            "agency",
            "tenants",
            "wallets",
            "webhooks",
            "connections",
            "credentials",
            "verifications",
            "sandbox",
        )
    },
}
