"""The Celery app. Tasks take no arguments: they find their work in the database."""

import os
from typing import Any

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

# Processes that were started before an update send these names until they are
# restarted. To be removed in the release after this one.
FORMER_NAMES = {
    "organizations.tasks.count_usage": "tenants.lifecycle.tasks.count_usage",
    "organizations.tasks.erase": "tenants.lifecycle.tasks.erase",
    "organizations.tasks.delete_old_exchanges": (
        "tenants.lifecycle.tasks.delete_old_exchanges"
    ),
    "agency.holder_pages.tasks.forget_closed_links": (
        "agency.holders.links.tasks.forget_closed_links"
    ),
    "agency.web_wallet.tasks.forget_ended_sessions": (
        "agency.holders.wallet.tasks.forget_ended_sessions"
    ),
}

app = Celery("agency")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.on_after_finalize.connect
def know_former_names(sender: Celery, **signal: Any) -> None:
    for former, name in FORMER_NAMES.items():
        sender.tasks[former] = sender.tasks[name]
