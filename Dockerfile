# One image for web, worker, beat and migrate: docker-compose.yml names the command of each.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# An init, as process 1 of every container: passes signals on and reaps what processes leave. And
# pg_dump and psql for backups, from PostgreSQL's own archive: not older than the server.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini postgresql-common \
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \
    && apt-get install --yes --no-install-recommends postgresql-client-18 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin agency
WORKDIR /app

COPY requirements.lock .
RUN pip install --require-hashes --requirement requirements.lock

COPY . .
# Static files need settings, not secrets: these values end with the line.
RUN DATABASE_URL=postgres://build SECRET_KEY=build-only \
    AGENCY_MASTER_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
    python manage.py collectstatic --no-input \
    && install --directory --owner agency --group agency var

# By number: an orchestrator sees that it is not root.
USER 10001
# STORAGE_ROOT and METRICS_ROOT. Nothing else is written into the image's folders.
VOLUME /app/var
ENV GRANIAN_HOST=0.0.0.0
EXPOSE 8000 8001
# Of the web server; docker-compose.yml has one for each of the others.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s \
    CMD ["python", "-m", "agency.ops.healthcheck"]
ENTRYPOINT ["tini", "--"]
CMD ["python", "manage.py", "start", "web"]
