"""Organizations and holders, which use only the API: in the process, or over HTTP."""

import copy
import json
import time
from itertools import count

import requests
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from tenants.lifecycle.provisioning import create_organization

numbers = count(1)


class Caller(Client):
    """A test client. A copy has the headers and cookies, and reads the settings again."""

    def __deepcopy__(self, known):
        made = type(self)(raise_request_exception=self.raise_request_exception)
        made.defaults, made.cookies = copy.deepcopy((self.defaults, self.cookies))
        return made


class HttpClient:
    """Calls a running product. Api uses it in place of Django's test client."""

    timeout = 180.0

    def __init__(self, url):
        self.url, self.session = url, requests.Session()
        self.session.trust_env = False  # pytest changes the environment meanwhile

    def generic(self, method, path, data="", content_type="", headers=None):
        sent = {"Content-Type": content_type} if content_type else {}
        given = {"data": data, "headers": sent | (headers or {})}
        return self.session.request(
            method, self.url + path, timeout=self.timeout, **given
        )


class PatientClient(HttpClient):
    """Repeats a request that needs a new key, after the time that the answer says."""

    def generic(self, *given, **named):
        while b"key_not_ready" in (answer := super().generic(*given, **named)).content:
            time.sleep(int(answer.headers["Retry-After"]))
        return answer


class ApiError(AssertionError):
    """A response other than 200."""

    def __init__(self, response):
        super().__init__(f"{response.status_code} {response.content.decode()}")
        self.status, self.body = response.status_code, response.json()
        self.code = self.body["code"]


class Api:
    """A client with an organization's keys.

    `call` raises ApiError unless it gets a 200.
    """

    def __init__(self, token, subscription, prefix=""):
        self.client, self.prefix = Caller(raise_request_exception=False), prefix
        self.headers = {
            "Authorization": f"bearer {token}",
            "X-Streetcred-Subscription-Key": subscription,
        }

    @classmethod
    def with_keys(cls, headers, client=None, prefix=""):
        """Return one that exists already. client: an HttpClient, if not in the process."""
        found = cls.__new__(cls)
        found.client = client or Caller(raise_request_exception=False)
        found.headers, found.prefix = headers, prefix
        return found

    def at(self, url):
        """Return one with the same keys that calls a running product."""
        return self.with_keys(self.headers, PatientClient(url), self.prefix)

    def send(self, method, path, body=None, form=None, **headers):
        given = {"headers": self.headers | headers}
        if form is not None:
            data = encode_multipart(BOUNDARY, form)
            given |= {"data": data, "content_type": MULTIPART_CONTENT}
        elif method != "get":
            data = "" if body is None else json.dumps(body)
            given |= {"data": data, "content_type": "application/json"}
        return self.client.generic(method.upper(), self.prefix + path, **given)

    def call(self, method, path, body=None, form=None, **headers):
        response = self.send(method, path, body, form, **headers)
        if response.status_code != 200:
            raise ApiError(response)
        return response.json() if response.content else None

    def get(self, path, **query):
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return self.call("get", f"{path}?{asked}" if asked else path)

    def post(self, path, body=None, form=None):
        return self.call("post", path, body, form)

    def put(self, path, body=None, form=None):
        return self.call("put", path, body, form)

    def put_form(self, path, **form):
        return self.call("put", path, form=form)

    def delete(self, path):
        return self.call("delete", path)

    def states(self):
        """The states of its credentials and its verifications, newest first."""
        kinds = ("/credentials", "/verifications")
        return [row["state"] for kind in kinds for row in self.get(kind)]


class Organization(Api):
    """An organization that issues and verifies, such as Faber and Acme.

    It has what the steps of tests/support/steps.py made, by their names.
    """

    holder = badge = None

    def __init__(self, name="", made=None, **options):
        made = made or create_organization(name, **options)
        super().__init__(made.access_token, made.subscription_key)
        self.made, self.tenant = made, made.tenant

    def hosts(self, owner="Alice"):
        wallet = self.post("/api/wallets", {"ownerName": owner})
        return Holder(self, wallet["walletId"])

    def invites(self, **body):
        return self.post("/connections", body)

    def defines(self, *attributes, **body):
        name = f"Schema {next(numbers)}"
        body = {"name": name, "version": "1.0", "attributes": list(attributes)} | body
        return self.post("/definitions/credentials", body)

    def offers(self, holder, definition, values=None, **body):
        body["definitionId"] = definition["definitionId"]
        body["connectionId"] = holder.known_as(self)
        if values is not None:
            body["credentialValues"] = values
        return self.post("/credentials", body)

    def asks(self, holder, **policy):
        policy = {"name": "Policy", "version": "1.0"} | policy
        path = f"/verifications/policy/connections/{holder.known_as(self)}"
        return self.post(path, policy)


class Provider(Api):
    """The provider account of an organization, used with its key."""

    def __init__(self, organization):
        super().__init__(organization.made.provider_key, "", "/provider/v1")
        self.account = organization.tenant.provider

    def makes(self, name="Branch", **body):
        return self.post("/tenants", {"name": name} | body)

    def opens(self, made):
        """Return the API of an organization that was created."""
        keys = self.get(f"/tenants/{made['tenantId']}/keys")
        return Api(keys["accessToken"], keys["subscriptionKey"])


class Holder(Api):
    """A holder such as Alice: a hosted wallet, used by the wallet API."""

    def __init__(self, host, wallet_id):
        self.client, self.headers = host.client, host.headers
        self.prefix, self.wallet_id = f"/api/{wallet_id}", wallet_id
        self.known = {}

    def accepts_invitation(self, invitation):
        return self.post("/connections/invitation", form={"invitation": invitation})

    def meets(self, organization):
        invited = organization.invites()
        mine = self.accepts_invitation(invited["invitation"])
        self.known[organization] = (invited["connectionId"], mine["connectionId"])
        return mine

    def known_as(self, organization):
        if organization not in self.known:
            self.meets(organization)
        return self.known[organization][0]

    def newest(self, kind):
        return self.get(f"/{kind}")[0]

    def accepts_offer(self):
        credential = self.newest("credentials")
        self.post(f"/credentials/{credential['credentialId']}")
        return credential["credentialId"]

    def receives(self, organization, definition, values):
        """Accept a credential that is issued automatically. Return its id."""
        organization.offers(self, definition, values, automaticIssuance=True)
        return self.accepts_offer()

    def auto_selects(self):
        asked = self.newest("verifications")
        self.put(f"/verifications/{asked['verificationId']}/autoSelect")
        return asked["verificationId"]
