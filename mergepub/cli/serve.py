"""The verb ``serve``: the options of the HTTP service. What they mean is decided in ``mergepub.service``."""

from __future__ import annotations

import re
from typing import Any

import click

from mergepub.cli.opening import store_url
from mergepub.cli.options import Digits, TextType, store_option, verb
from mergepub.cli.streams import say
from mergepub.errors import InputError

_SIZE = re.compile(r"([1-9][0-9]{0,11})(|B|KiB|MiB|GiB)\Z")
_FACTORS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(|s|m|h)\Z")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Size(TextType):
    """A number of bytes: ``16MiB``, ``64KiB``, ``1000000``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """``value`` in bytes, or a usage error."""
        match = _SIZE.match(str(value))
        if match is None:
            self.fail(f"{value!r} is not a size: write 16MiB, 64KiB, or a number of bytes.", param, ctx)
        return int(match[1]) * _FACTORS[match[2]]


class Duration(TextType):
    """A time: ``30s``, ``5m``, ``0.5``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """``value`` in seconds, or a usage error."""
        match = _TIME.match(str(value))
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
        if not seconds:
            self.fail(f"{value!r} is not a time: write 30s, 5m, or a number of seconds.", param, ctx)
        return seconds


@verb(
    "serve",
    "mergepub serve",
    "mergepub serve --host 0.0.0.0 --public-name docs.example.org --tls-cert cert.pem --tls-key key.pem",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="The address to listen on.")
@click.option("--port", type=Digits(0, 65535), default=8470, show_default=True, help="The port; 0 takes a free one.")
@click.option("--public-name", multiple=True, metavar="NAME", help="A host name that clients call the service by.")
@click.option("--workers", type=Digits(1, 64), default=1, show_default=True, help="Processes that serve.")
@click.option("--max-body", type=Size(), default="16MiB", show_default=True, help="The largest body.")
@click.option("--max-head", type=Size(), default="32KiB", show_default=True, help="Request line and headers together.")
@click.option("--max-connections", type=Digits(1, 65536), default=512, show_default=True, help="Of one worker.")
@click.option("--header-timeout", type=Duration(), default="30s", show_default=True, help="For the whole header.")
@click.option("--body-timeout", type=Duration(), default="60s", show_default=True, help="Without a byte of a body.")
@click.option("--request-timeout", type=Duration(), default="5m", show_default=True, help="For a request as a whole.")
@click.option("--tls-cert", metavar="FILE", help="The certificate chain, PEM.")
@click.option("--tls-key", metavar="FILE", help="Its private key, PEM.")
@click.option("--open-to-everyone", is_flag=True, help="Serve other machines without tokens.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="Of the log on standard error.")
@store_option
@click.pass_context
def serve_command(context: click.Context, /, **given: Any) -> int:
    """Put the store on HTTP.

    Until SIGTERM or SIGINT, which let requests under way finish. Tokens (mergepub token create) close the service;
    without any it serves this machine alone. Needs the extra: pip install "mergepub[server]".
    """
    from mergepub.service.settings import Limits, Settings

    limits = Limits(
        body=given["max_body"],
        head=given["max_head"],
        connections=given["max_connections"],
        header_time=given["header_timeout"],
        body_time=given["body_timeout"],
        request_time=given["request_timeout"],
    )
    settings = Settings(
        store_url(context),
        public_names=given["public_name"],
        limits=limits,
        **{name: given[name] for name in ("host", "port", "workers", "tls_cert", "tls_key")},
        **{name: given[name] for name in ("open_to_everyone", "log_format")},
    )
    try:
        from mergepub.service.runner import serve
    except ModuleNotFoundError as error:
        raise InputError(
            f"serving needs the package {error.name}", hint='install the extra: pip install "mergepub[server]"'
        ) from error
    serve(settings, say)
    return 0
