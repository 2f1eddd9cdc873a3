"""URL patterns of the sandbox, for the prefixes of the credentials API."""

from django.urls import path

from sandbox.api.holders import SimulatedHolders
from sandbox.api.samples import Samples

credentials_api = [
    path("sandbox/samples", Samples.as_view({"post": "create"})),
    path(
        "sandbox/holders", SimulatedHolders.as_view({"get": "list", "post": "create"})
    ),
    path(
        "sandbox/holders/<str:holderId>",
        SimulatedHolders.as_view(
            {"get": "retrieve", "put": "change", "delete": "destroy"}
        ),
    ),
]
