"""Reads of one connection per second, by 1 and 16 clients, from 1 and 2 processes."""

from bench import load
from bench.cycle import headers_of
from bench.product import running
from bench.story import Caller

CLIENTS, PROCESSES = (1, 16), (1, 2)
SECONDS = 4.0


def run():
    for processes in PROCESSES:
        with running("web", WEB_PROCESSES=str(processes)) as url:
            caller = Caller(url).prepare()
            path = f"/connections/{caller.connection}"
            client = {"url": url, "headers": headers_of(caller), "path": path}
            for clients in CLIENTS:
                found = load.measure_load("read", [client] * clients, SECONDS, {})
                print(
                    f"{processes} process(es), {clients:2} client(s): "
                    f"{found.rate:6.0f} reads per second",
                    flush=True,
                )
