"""The Celery app. Tasks find their work in the database; arguments are ids only."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

app = Celery("agency")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
