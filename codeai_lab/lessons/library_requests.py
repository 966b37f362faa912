"""What waits come out of the retry loops that a library puts around a request?

Chapter: 000, section 15.7.

Idea: as in `lessons.library_loops`, with what lies below the loop, the connection, replaced by an answer of
503. Where a library fixes its numbers, they are its own.

Always true:
  LQ1. No socket is opened, nobody sleeps, no proxy, no credential and no setting of the environment is used.
  LQ2. A library is imported when its loop is driven, and not before.

Not here: what stands in for clock and chance (`lessons.library_standins`), the same waits as formulas
(`explore.library_laws`), the rows (`lessons.libraries`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import BytesIO
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

from codeai_lab.explore.library_laws import BASE, CAP, RETRIES
from codeai_lab.lessons.library_standins import finished, standing_in

ATTEMPTS = RETRIES + 1
NOWHERE = "http://127.0.0.1"  # never asked: the answer comes from below the loop
UNAVAILABLE = 503


def urllib3(jitter: float) -> Callable[[Random], list[float]]:
    """Drive urllib3's pool with retries on 503."""

    def drive(chance: Random) -> list[float]:
        from urllib3.util.retry import Retry

        retries = Retry(
            total=RETRIES,
            status_forcelist=[UNAVAILABLE],
            backoff_factor=BASE,
            backoff_max=CAP,
            backoff_jitter=jitter,
            raise_on_status=False,
        )
        with standing_in(chance, "urllib3.util.retry:time", "urllib3.util.retry:random") as waited:
            _unavailable_pool(waited).urlopen("GET", "/", retries=retries)
        return waited

    return drive


def requests(chance: Random) -> list[float]:
    """Drive a session of requests as it comes."""
    import requests as library

    adapter = library.adapters.HTTPAdapter()
    with (
        library.Session() as session,
        standing_in(chance, "urllib3.util.retry:time", "urllib3.util.retry:random") as waited,
    ):
        pool = _unavailable_pool(waited)
        adapter.poolmanager.connection_from_host = lambda **_: pool
        session.trust_env = False
        session.mount(NOWHERE, adapter)
        session.get(NOWHERE)
    return waited


def httpx_retries(jitter: float) -> Callable[[Random], list[float]]:
    """Drive the retrying transport of httpx-retries."""

    def drive(chance: Random) -> list[float]:
        import httpx
        from httpx_retries import Retry, RetryTransport

        transport = RetryTransport(
            transport=httpx.MockTransport(lambda _: httpx.Response(UNAVAILABLE)),
            retry=Retry(total=RETRIES, backoff_factor=BASE, max_backoff_wait=CAP, backoff_jitter=jitter),
        )
        with standing_in(chance, "httpx_retries.retry:time", "httpx_retries.retry:random") as waited:
            transport.handle_request(httpx.Request("GET", NOWHERE))
        return waited

    return drive


def aiohttp_retry(options: str, **more: float) -> Callable[[Random], list[float]]:
    """Drive aiohttp-retry with one of its options, by name; its session answers without a network."""

    def drive(chance: Random) -> list[float]:
        import aiohttp_retry as library

        async def request(method: str, *_: object, **__: object) -> Any:
            return SimpleNamespace(method=method, status=UNAVAILABLE, closed=True)

        async def ask() -> None:
            client = library.RetryClient(client_session=SimpleNamespace(request=request))
            how = getattr(library, options)(
                attempts=ATTEMPTS, start_timeout=BASE, max_timeout=CAP, factor=2, **more
            )
            async with client.get(NOWHERE, retry_options=how):
                pass

        with standing_in(
            chance, "aiohttp_retry.client:asyncio", "aiohttp_retry.retry_options:random"
        ) as waited:
            finished(ask())
        return waited

    return drive


def botocore(mode: str, status: int) -> Callable[[Random], list[float]]:
    """Drive botocore's endpoint with a mode's own handler, as a client registers it; no session is made.

    Every loop has a handler of its own, since a handler's quota lasts for few loops that fail.
    """

    def drive(chance: Random) -> list[float]:
        from botocore.awsrequest import AWSResponse
        from botocore.endpoint import Endpoint
        from botocore.hooks import HierarchicalEmitter
        from botocore.model import ServiceModel

        service = ServiceModel(
            {
                "metadata": {"serviceId": "Example", "endpointPrefix": "example", "protocol": "json"},
                "operations": {"Ask": {"name": "Ask", "http": {"method": "POST", "requestUri": "/"}}},
                "shapes": {},
            }
        )
        events = HierarchicalEmitter()
        answer = AWSResponse(NOWHERE, status, {}, SimpleNamespace(stream=lambda: [b"{}"]))
        session = SimpleNamespace(send=lambda _: answer)
        register = {"standard": _botocore_standard, "legacy": _botocore_legacy}[mode]
        register(events, service, chance)
        with standing_in(chance, "botocore.endpoint:time", "botocore.retryhandler:random") as waited:
            Endpoint(NOWHERE, "example", events, http_session=session).make_request(
                service.operation_model("Ask"),
                {
                    "method": "POST", "url": NOWHERE, "headers": {}, "body": b"",
                    "context": {"read_timeout": 60},
                },
            )  # fmt: skip
        return waited

    return drive


def model_sdk(library: str, client: str, **options: bool) -> Callable[[Random], list[float]]:
    """Drive the client of a model's SDK by its list of models; only the number of retries is a parameter."""

    def drive(chance: Random) -> list[float]:
        base = f"{library}._base_client"
        unset: dict[str, dict[str, Any]] = {f"{library}._client:os": {"environ": {}}}
        with standing_in(chance, f"{base}:time", f"{base}:random", instead=unset) as waited:
            module, asking = _model_client(library, client, **options)
            with suppress(module.APIStatusError):
                asking.models.list()
        return waited

    return drive


def _unavailable_pool(waited: list[float]) -> Any:
    """Give a pool of urllib3 that answers 503 where it would send a request.

    A retry that urllib3 does not wait for is noted as a wait of 0.
    """
    from urllib3 import HTTPConnectionPool, HTTPResponse

    pool, asked = HTTPConnectionPool("127.0.0.1"), count()

    def answer(*_: object, **__: object) -> Any:
        waited.extend([0.0] * (next(asked) - len(waited)))
        return HTTPResponse(body=BytesIO(), status=UNAVAILABLE, preload_content=False)

    pool._make_request = answer
    return pool


def _botocore_standard(events: Any, service: Any, chance: Random) -> None:
    from botocore.retries import standard

    client = SimpleNamespace(meta=SimpleNamespace(service_model=service, events=events))
    handler = standard.register_retry_handler(client, max_attempts=ATTEMPTS)
    # its chance is the default of a parameter, which no name leads to
    handler._retry_policy._retry_backoff._random = chance.random


def _botocore_legacy(events: Any, service: Any, _: Random) -> None:
    from botocore import retryhandler, translate
    from botocore.loaders import Loader

    # only the library's own data: a user's folder of models is not looked at
    own = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    known = own.load_data("_retry")
    config = translate.build_retry_config(
        service.endpoint_prefix, known["retry"], known["definitions"], {"max_attempts": RETRIES}
    )
    events.register("needs-retry.example", retryhandler.create_retry_handler(config))


@cache
def _model_client(library: str, client: str, **options: bool) -> tuple[Any, Any]:
    """Make a client one time: to make one takes as long as many loops."""
    import httpx2

    module = import_module(library)
    answering = httpx2.MockTransport(lambda asked: httpx2.Response(UNAVAILABLE, request=asked))
    return module, getattr(module, client)(
        api_key="unused",
        base_url=NOWHERE,
        max_retries=RETRIES,
        http_client=httpx2.Client(transport=answering, trust_env=False),
        **options,
    )
