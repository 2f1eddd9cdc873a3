"""All settings, from environment variables only. docs/settings.md lists them."""

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
env = environ.FileAwareEnv()

# For development only: Django's error pages, which show settings and routes. Never in
# production.
DEBUG = env.bool("DEBUG", default=False)
# Signs sessions and links in the studio.
SECRET_KEY = env.str("SECRET_KEY", default="")
# Former values of SECRET_KEY, separated by commas: what they signed stays valid.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
# Base64 of 32 random bytes. This key wraps the data keys that seal every secret in the
# database.
AGENCY_MASTER_KEY = env.str("AGENCY_MASTER_KEY", default="")
# Instead of the key: a command that prints it. Every process runs it when it starts.
AGENCY_MASTER_KEY_COMMAND = env.str("AGENCY_MASTER_KEY_COMMAND", default="")
# The master key before this one, until `manage.py rotate_master_key` has finished.
AGENCY_OLD_MASTER_KEY = env.str("AGENCY_OLD_MASTER_KEY", default="")
AGENCY_OLD_MASTER_KEY_COMMAND = env.str("AGENCY_OLD_MASTER_KEY_COMMAND", default="")
# Base64 of 32 random bytes: seals the file by which an organization moves to another
# installation. Only `export_organization` and `import_organization` need it.
AGENCY_MOVE_KEY = env.str("AGENCY_MOVE_KEY", default="")
AGENCY_MOVE_KEY_COMMAND = env.str("AGENCY_MOVE_KEY_COMMAND", default="")
# PostgreSQL, as postgres://user:password@host:port/name.
DATABASE_URL = env.str("DATABASE_URL", default="")
# Redis or Valkey, the broker between web and worker.
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
# Seconds that `migrate` and other one-off commands of manage.py wait for a lock.
DATABASE_LOCK_TIMEOUT = env.float("DATABASE_LOCK_TIMEOUT", default=2.0)
# Set by manage.py: one-off commands have no statement timeout and no connection pool.
ONE_OFF_COMMAND = env.bool("ONE_OFF_COMMAND", default=False)
# The maximal number of connections to PostgreSQL of one process.
DATABASE_POOL_SIZE = env.int("DATABASE_POOL_SIZE", default=8)
# Whether web processes let PostgreSQL prepare the statements that they repeat.
DATABASE_PREPARED_STATEMENTS = env.bool("DATABASE_PREPARED_STATEMENTS", default=True)
# The port the web server listens on.
PORT = env.int("PORT", default=8000)
# The number of web processes, which share the port. The Procfile gives it to the server.
WEB_PROCESSES = env.int("WEB_PROCESSES", default=count_processors())
# Threads of a web process for quick requests, and the same number for requests with
# long cryptography. Half of the former may wait (`Prefer: wait`).
WEB_THREADS = env.int("WEB_THREADS", default=4)
# The base URL of every invitation, endpoint and link; never derived from a request.
PUBLIC_URL = env.str("PUBLIC_URL", default=f"http://127.0.0.1:{PORT}").rstrip("/")
# The port the stream process listens on.
STREAM_PORT = env.int("STREAM_PORT", default=PORT + 1)
# The base URL of the event streams. Without a proxy, it is PUBLIC_URL with
# STREAM_PORT.
STREAM_URL = env.str(
    "STREAM_URL",
    default=re.sub(rf":{PORT}$", f":{STREAM_PORT}", PUBLIC_URL),
).rstrip("/")
# The maximal number of open event streams of one process, and of one organization.
STREAM_LISTENERS = env.int("STREAM_LISTENERS", default=2000)
STREAM_LISTENERS_PER_TENANT = env.int("STREAM_LISTENERS_PER_TENANT", default=50)
# The URI scheme of the deep links that open a wallet app.
DEEP_LINK_SCHEME = env.str("DEEP_LINK_SCHEME", default="didcomm")
# Host names that the web server accepts.
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
# Origins whose pages may call the API from a browser, such as https://app.example,
# separated by commas; * for all.
CORS_ORIGINS = env.list("CORS_ORIGINS", default=[])
# Whether static files are served from the installed packages, without collectstatic.
STATIC_USE_FINDERS = env.bool("STATIC_USE_FINDERS", default=False)
# Folder (a volume shared by all processes) for files that are served publicly.
STORAGE_ROOT = env.str("STORAGE_ROOT", default=str(BASE_DIR / "var" / "storage"))
# The class of another storage than that folder, such as
# storages.backends.s3.S3Storage, and its options as JSON.
STORAGE_BACKEND = env.str("STORAGE_BACKEND", default="")
STORAGE_OPTIONS = env.json("STORAGE_OPTIONS", default={})
# `json` or `text`.
LOG_FORMAT = env.str("LOG_FORMAT", default="json")
# Level of the product's own log lines.
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
# The kinds of processes without which readiness and metrics report one as missing.
EXPECTED_PROCESSES = env.list(
    "EXPECTED_PROCESSES", default=["web", "stream", "worker", "deliver", "beat"]
)
# The bearer token with which Prometheus reads /metrics; without it the page is 404.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
# Where to report a weakness of this installation, as URIs separated by commas.
SECURITY_CONTACT = env.list("SECURITY_CONTACT", default=[])
# Folder in which the processes of one host store their Prometheus counters.
METRICS_ROOT = env.str("METRICS_ROOT", default=str(BASE_DIR / "var" / "metrics"))
# Whether a provider may read the keys of its organizations again (provider API).
PROVIDER_KEYS_READABLE = env.bool("PROVIDER_KEYS_READABLE", default=True)
# The regions that the provider API lists: Name=Text, separated by commas.
REGIONS = env.dict("REGIONS", default={"UnitedStates": "United States"})
# Whether anybody may sign up in the studio; if not, staff create the users.
STUDIO_SIGN_UP = env.bool("STUDIO_SIGN_UP", default=True)
# Path prefixes under which the subscription key may be absent, separated by commas.
SUBSCRIPTION_KEY_OPTIONAL = tuple(
    f"/{prefix.strip('/')}/".replace("//", "/")
    for prefix in env.list(
        "SUBSCRIPTION_KEY_OPTIONAL", default=["/credentials/v1", "/wallet/v1"]
    )
)
# Other ids of networks of this agency: id=network, separated by commas.
NETWORK_ALIASES = env.dict("NETWORK_ALIASES", default={})
# Keys of definitions that are generated in advance.
SPARE_KEYS = env.int("SPARE_KEYS", default=4)
# Definitions that one organization may make in a minute (six times as many with the
# original clients), and in a day; 0 for no limit.
DEFINITIONS_A_MINUTE = env.int("DEFINITIONS_A_MINUTE", default=10)
DEFINITIONS_A_DAY = env.int("DEFINITIONS_A_DAY", default=100)
# Number of credentials in the first revocation registry of a definition, and in later
# ones.
REVOCATION_FIRST_REGISTRY_SIZE = env.int("REVOCATION_FIRST_REGISTRY_SIZE", default=64)
REVOCATION_REGISTRY_SIZE = env.int("REVOCATION_REGISTRY_SIZE", default=1000)
# Public DIDs that may be resolved per minute on behalf of one organization: so many of
# its own callers, and so many of strangers. 0 for no limit.
DIDS_PER_MINUTE = env.int("DIDS_PER_MINUTE", default=120)
# Requests per minute to connect to the public DID of one organization, if it accepts
# them without an invitation, of which one address takes a quarter; 0 for no limit.
REQUESTS_PER_DID = env.int("REQUESTS_PER_DID", default=240)
# Requests per minute to connect from one address by one invitation; 0 for no limit.
REQUESTS_PER_INVITATION = env.int("REQUESTS_PER_INVITATION", default=60)
# Seconds that a call waits for a remote ledger, all in all.
LEDGER_TIMEOUT = env.float("LEDGER_TIMEOUT", default=15.0)
# Maximal bytes of another issuer's tails file: 10 MiB are enough for 40,000
# credentials.
MAX_TAILS_BYTES = env.int("MAX_TAILS_BYTES", default=10 * 1024 * 1024)
# Maximal number of credentials in a revocation registry: its tails file has 256 bytes
# for each.
MAX_PLACES = MAX_TAILS_BYTES // 256
# Maximal bytes of one API request body.
MAX_BODY_BYTES = env.int("MAX_BODY_BYTES", default=256 * 1024)
# Maximal bytes of a file of credentials to be offered.
MAX_BULK_BYTES = env.int("MAX_BULK_BYTES", default=10 * 1024 * 1024)
# Maximal bytes of one uploaded picture.
MAX_IMAGE_BYTES = env.int("MAX_IMAGE_BYTES", default=256 * 1024)
# Maximal bytes of one DIDComm envelope.
MAX_ENVELOPE_BYTES = env.int("MAX_ENVELOPE_BYTES", default=1024 * 1024)
# Whether outgoing calls may reach this machine itself.
OUTGOING_ALLOW_LOOPBACK = env.bool("OUTGOING_ALLOW_LOOPBACK", default=False)
# Private networks that outgoing calls may reach, such as 10.1.0.0/16, comma-separated.
OUTGOING_ALLOWED_NETWORKS = env.list(
    "OUTGOING_ALLOWED_NETWORKS", cast=ip_network, default=[]
)
# PEM file of the authorities that outgoing TLS trusts; empty for Mozilla's list
# (certifi).
OUTGOING_CA_FILE = env.str("OUTGOING_CA_FILE", default="")
# Whether only https addresses can be registered as webhooks.
WEBHOOK_REQUIRE_HTTPS = env.bool("WEBHOOK_REQUIRE_HTTPS", default=True)
# Webhook calls that one worker process makes at a time; at most a quarter of them to
# one address, and half for one organization.
WEBHOOK_THREADS = env.int("WEBHOOK_THREADS", default=16)
# Messages to other agents that one process sends at a time; at most a quarter of them
# to one endpoint, and half for one organization.
MESSAGE_THREADS = env.int("MESSAGE_THREADS", default=16)
# Days for which events and their deliveries are kept.
EVENT_RETENTION_DAYS = env.int("EVENT_RETENTION_DAYS", default=30)
# Days for which finished messages between agents are kept. A digest of each received
# message remains, to recognise duplicates.
MESSAGE_RETENTION_DAYS = env.int("MESSAGE_RETENTION_DAYS", default=30)
# Days for which the log of who changed what is kept; 0 for ever.
AUDIT_RETENTION_DAYS = env.int("AUDIT_RETENTION_DAYS", default=400)
# Hours in which the deletion of an organization by its own key can be undone; 0 deletes
# it at once.
DELETION_UNDO_HOURS = env.int("DELETION_UNDO_HOURS", default=24)
# API calls that are logged for each organization, the newest ones; 0 logs none.
REQUEST_LOG_ROWS = env.int("REQUEST_LOG_ROWS", default=100_000)
# Days for which the admin's own log of its changes is kept; 0 for ever.
ADMIN_LOG_RETENTION_DAYS = env.int("ADMIN_LOG_RETENTION_DAYS", default=0)
# Quotas of organizations that were created by sign-up in the studio; 0 for no limit.
# Organizations created by staff, by the command or by a provider have none.

# Hosted wallets.
QUOTA_WALLETS = env.int("QUOTA_WALLETS", default=1000)
# Connections and open invitations.
QUOTA_CONNECTIONS = env.int("QUOTA_CONNECTIONS", default=10_000)
# Connections that strangers began, and with which the organization did nothing.
QUOTA_STRANGERS = env.int("QUOTA_STRANGERS", default=2000)
# Credentials and verifications that are not in a final state.
QUOTA_OPEN_EXCHANGES = env.int("QUOTA_OPEN_EXCHANGES", default=10_000)
# Credential definitions, deleted ones included.
QUOTA_DEFINITIONS = env.int("QUOTA_DEFINITIONS", default=100)
# Pictures of the account, and their bytes.
QUOTA_PICTURES = env.int("QUOTA_PICTURES", default=100)
QUOTA_PICTURE_BYTES = env.int("QUOTA_PICTURE_BYTES", default=10 * 1024 * 1024)
# Organizations of one person.
QUOTA_ORGANIZATIONS = env.int("QUOTA_ORGANIZATIONS", default=10)
# Tests only: whether FAULT_POINT is used.
FAULT_INJECTION = env.bool("FAULT_INJECTION", default=False)
# Tests only: the fault point at which a process kills itself.
FAULT_POINT = env.str("FAULT_POINT", default="") if FAULT_INJECTION else ""
# The mail server for the studio, as smtp://user:password@host:port; empty for no mail.
EMAIL_URL = env.str("EMAIL_URL", default="")
# Whether people must follow a link in a mail before their first sign-in.
STUDIO_VERIFY_EMAIL = env.bool("STUDIO_VERIFY_EMAIL", default=bool(EMAIL_URL))
# Whether staff need a second factor to open the admin.
STAFF_SECOND_FACTOR = env.bool("STAFF_SECOND_FACTOR", default=True)
# The sender of the studio's mail.
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="agency@localhost")
# Whether there is a proxy that sets X-Forwarded-Proto.
TRUST_PROXY = env.bool("TRUST_PROXY", default=False)
# The number of proxies in a row, each of which appends to X-Forwarded-For.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=int(TRUST_PROXY))
# Envelopes per minute that /didcomm accepts from one address; 0 for no limit.
INBOX_PER_ADDRESS = env.int("INBOX_PER_ADDRESS", default=6000)
# Envelopes per minute that it accepts from one sender for one key of a wallet: the
# limit is that of the pair. 0 for no limit.
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
DEMO_FILE = BASE_DIR / "var" / "demo.json"

INSTALLED_APPS = [
    # Before Django's: of two translations of a text, that of the first app is used.
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
    "agency",
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
]

# For pages; the first one lets calls of the API go through API_MIDDLEWARE instead.
MIDDLEWARE = [
    "agency.server.chains.ChainByPath",
    "agency.server.middleware.request_id",
    "agency.server.middleware.limited_waiting",
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
    "agency.server.middleware.request_id",
    "agency.server.middleware.limited_waiting",
    "agency.server.cors.Middleware",
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
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agency.studio.menu.menu_context",
                "agency.studio.pages.member_context",
            ],
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
# How often beat sends each periodic task, in seconds. A task that was not begun by the
# next time is not begun at all.
PERIODIC_TASKS = {
    "connections.tasks.sweep": 5,
    "connections.tasks.deliver": 5,
    "connections.tasks.end_expired_links": 30,
    "webhooks.tasks.deliver": 5,
    "webhooks.tasks.maintain": 5,
    "agency.mails.tasks.send_webhook_notices": 30,
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
    "credentials.tasks.publish_on_ledgers": 5,
    "credentials.tasks.delete_copied_lists": 3600,
    "credentials.tasks.issue_bulks": 5,
    "sandbox.tasks.answer_exchanges": 5,
    "sandbox.tasks.delete_old_data": 3600,
    "credentials.tasks.delete_old_bulks": 3600,
    "credentials.tasks.build_registries": 10,
    "tenants.tasks.delete_old_idempotency_keys": 600,
    "credentials.tasks.finish_what_was_left_behind": 30,
    "wallets.tasks.fill_key_pool": 30,
}
CELERY_BEAT_SCHEDULE = {
    name: {"task": name, "schedule": float(seconds), "options": {"expires": seconds}}
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
        "VerificationState": "verifications.models.Verification.State",
        "ClaimType": "credentials.api.serializers.CLAIM_TYPES",
        "EndorserType": "tenants.models.Tenant.Endorser",
        "AttachmentFormat": "connections.api.serializers.FORMATS",
        "ChosenAttachmentFormat": "connections.api.protocols.ATTACHMENT_FORMATS",
        "ChosenVersion": "connections.api.protocols.EXCHANGE_VERSIONS",
        "ExchangeVersion": "connections.api.serializers.VERSIONS",
        "InvitationProtocol": "connections.api.serializers.PROTOCOLS",
        "LinkProtocol": "connections.api.serializers.LINK_PROTOCOLS",
        "Handshake": "connections.protocols.out_of_band.HANDSHAKE_VERSIONS",
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
STATIC_ROOT = None if STATIC_USE_FINDERS else BASE_DIR / "staticfiles"
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
