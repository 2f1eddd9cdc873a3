"""Run the Python example of a page as its reader does."""

import os
import re
import subprocess
import sys

from tenants.lifecycle.provisioning import create_organization


def assert_example_prints_what_it_says(page, url, **options):
    """url: of the running product. options: of the organization that runs it."""
    made = create_organization("Registry office", strict=True, **options)
    [story] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    environment = os.environ | {
        "AGENCY_URL": url,
        "ACCESS_TOKEN": made.access_token,
        "SUBSCRIPTION_KEY": made.subscription_key,
    }
    command = [sys.executable, "-c", story]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.stderr == ""
    assert f"It prints `{ran.stdout.strip()}`." in page
