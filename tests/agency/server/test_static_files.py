"""Static files on a server: collected, under hashed names, and reported if missing."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.test import override_settings

from agency.ops.checks import check_static_files

# WhiteNoise warns where nothing is collected.
pytestmark = pytest.mark.filterwarnings("ignore:No directory at:UserWarning")
ROUTE = "/accounts/login/"


@pytest.fixture
def server(tmp_path):
    """Nothing is collected yet."""
    backend = {"BACKEND": "agency.server.static_files.CollectedFilesStorage"}
    with override_settings(
        STATIC_ROOT=tmp_path / "staticfiles",
        STORAGES=settings.STORAGES | {"staticfiles": backend},
        WHITENOISE_USE_FINDERS=False,
        WHITENOISE_SKIP_COMPRESS_EXTENSIONS=["css", "js", "map"],  # takes seconds
    ):
        yield


def test_a_server_without_collected_files_says_what_to_run(server, client, db):
    [error] = check_static_files()
    assert error.id == "agency.E002" and "manage.py collectstatic" in error.msg
    with pytest.raises(ValueError, match="manage.py collectstatic"):
        client.get(ROUTE)
    client.raise_request_exception = False
    answer = client.get(ROUTE, headers={"Accept": "text/html"})
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.content.decode()


def test_a_server_serves_collected_files_under_hashed_names_and_misses_a_new_one(
    server, client, db
):
    call_command("collectstatic", "--no-input", verbosity=0)
    assert check_static_files() == []
    page = client.get(ROUTE).content.decode()
    [file] = re.findall(r'"(/static/agency/agency\.[0-9a-f]{12}\.css)"', page)
    answer = client.get(file)
    answer.close()
    assert answer.status_code == 200 and "immutable" in answer["Cache-Control"]
    # A file that an upgrade brought:
    del staticfiles_storage.hashed_files["agency/docs.css"]
    [error] = check_static_files()
    assert "agency/docs.css" in error.msg


@pytest.mark.slow
def test_migrate_refuses_where_files_are_not_collected(tmp_path):
    """Run a server's command as an operator would, without a `staticfiles/` folder."""
    environment = os.environ | {"STATIC_USE_FINDERS": "0"}
    program = (
        f"from agency import settings; settings.STATIC_ROOT = {str(tmp_path)!r};"
        "import sys; sys.argv = ['manage.py', 'migrate', '--plan']; import "
        "manage; manage.main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True
    )
    assert ran.returncode and b"agency.E002" in ran.stderr
