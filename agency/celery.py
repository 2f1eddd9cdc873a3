"""The Celery app. Tasks take no arguments: they find their work in the database."""

import gc
import os

from celery import Celery

# Every process of the product loads this before the apps, which make many objects and
# no garbage: nothing is collected until they are loaded (agency/apps.py). What works on
# requests and rows leaves few cycles behind, too.
gc.set_threshold(10_000, 20, 20)
collects_garbage = gc.isenabled()
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")
# Celery drops what Django's checks find, for which they load all routes. What stops a
# worker is in agency/ops/checks.py.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("agency", task_cls="agency.ops.periodic_runs:PeriodicTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
