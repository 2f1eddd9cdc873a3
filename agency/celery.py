"""The Celery app. Tasks take no arguments: they find their work in the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

app = Celery("agency", task_cls="agency.ops.periodic_runs:PeriodicTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
