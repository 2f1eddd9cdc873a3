"""URL patterns of the sandbox, for the prefixes of the credentials API."""

from core.api.views import route
from sandbox.api.holders import SimulatedHolders
from sandbox.api.samples import Samples

credentials_api = [
    route("sandbox/samples", Samples, post="create"),
    route("sandbox/holders", SimulatedHolders, get="list", post="create"),
    route(
        "sandbox/holders/<str:holderId>",
        SimulatedHolders,
        get="retrieve",
        put="change",
        delete="destroy",
    ),
]
