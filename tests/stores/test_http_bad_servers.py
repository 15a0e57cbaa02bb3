"""Whatever a server answers, the HTTP store takes only a clear yes for a yes, and a secret stays where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mergepub.documents import ABSENT, Version, digest_of
from mergepub.errors import (
    DeniedError,
    DocumentDeletedError,
    DocumentExistsError,
    InputError,
    MergepubError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    ThrottledError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)
from mergepub.stores.http import HttpStore
from mergepub.stores.http_wire import Timeouts
from mergepub.stores.wrappers import RetryPolicy
from tests.stores.scripted_server import (
    HANG,
    HTML,
    NO_CLEAR_ANSWER,
    RESET,
    Committing,
    Request,
    ScriptedServer,
    document_reply,
    json_reply,
    problem,
    reply,
    repr_digest,
)

PATH = "/docs/guide.md"
BODY = b"our edit\n"
ONCE = RetryPolicy(attempts=1)
AT_4 = Version(4)
SECRET = "mp_c0ffee-do-not-tell"

Server = Callable[..., ScriptedServer]


@pytest.fixture
def server() -> Iterator[Server]:
    started: list[ScriptedServer] = []

    def start(*script: object) -> ScriptedServer:
        started.append(ScriptedServer(list(script)))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(autouse=True)
def no_secrets_around(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    for name in ("MERGEPUB_TOKEN", "MERGEPUB_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


def store_on(server: ScriptedServer, **options: object) -> HttpStore:
    return HttpStore(server.url, timeouts=Timeouts(connect=2, read=0.3), **{"policy": ONCE, **options})


def publish(store: HttpStore, expected: Version = AT_4) -> object:
    return store.publish(PATH, BODY, expected)


@pytest.mark.parametrize("answer", NO_CLEAR_ANSWER.values(), ids=NO_CLEAR_ANSWER.keys())
def test_no_write_takes_anything_but_a_clear_yes_for_a_yes(server: Server, answer: object) -> None:
    writes: list[Callable[[HttpStore], object]] = [
        publish,
        lambda store: publish(store, ABSENT),
        lambda store: store.append(PATH, BODY, key="k1"),
        lambda store: store.delete(PATH, AT_4),
    ]
    for write in writes:
        broken = server(answer)
        with pytest.raises(UnavailableError) as caught:
            write(store_on(broken))
        assert caught.value.exit_status == 4
        assert sum(request.method != "GET" for request in broken.requests) == 1


@pytest.mark.parametrize("answer", NO_CLEAR_ANSWER.values(), ids=NO_CLEAR_ANSWER.keys())
def test_no_read_takes_anything_but_a_clear_answer(server: Server, answer: object) -> None:
    reads: list[Callable[[HttpStore], object]] = [
        lambda store: store.fetch(PATH),
        lambda store: store.fetch(PATH, 5),
        lambda store: list(store.versions(PATH)),
        lambda store: list(store.list()),
    ]
    for read in reads:
        with pytest.raises(UnavailableError) as caught:
            read(store_on(server(answer)))
        assert not isinstance(caught.value, UnknownOutcomeError), "a read changes nothing"


def test_a_new_version_that_is_not_the_next_is_not_the_answer_to_this_publish(server: Server) -> None:
    with pytest.raises(UnknownOutcomeError, match="version 5 was to be made"):
        publish(store_on(server(json_reply(201, {"version": 9}))))


SENT_AND_LOST = ["500", "502 with HTML", "201 with an empty body", "half a body", "a reset", "a hang", "200 with HTML"]


@pytest.mark.parametrize("name", SENT_AND_LOST)
def test_a_write_that_was_sent_and_not_answered_clearly_has_an_unknown_outcome(server: Server, name: str) -> None:
    with pytest.raises(UnknownOutcomeError, match="may or may not"):
        publish(store_on(server(NO_CLEAR_ANSWER[name])))


def test_a_write_that_never_left_has_a_known_outcome() -> None:
    with pytest.raises(UnavailableError, match="Connection refused") as caught:
        publish(HttpStore("http://127.0.0.1:1", policy=ONCE))
    assert not isinstance(caught.value, UnknownOutcomeError)


def test_a_host_that_does_not_exist_is_named_in_the_error() -> None:
    with pytest.raises(UnavailableError, match=r"no-such-host\.invalid"):
        HttpStore("http://no-such-host.invalid", policy=ONCE).fetch(PATH)


BAD_DOCUMENTS = {
    "the digest of other bytes": document_reply(b"whole\n", Repr_Digest=repr_digest(b"other\n")),
    "a digest that is no base64": document_reply(b"whole\n", Repr_Digest="sha-256=:???:"),
    "a digest of another kind": document_reply(b"whole\n", Repr_Digest="sha-512=:AAAA:"),
    "no digest": document_reply(b"whole\n", Repr_Digest=""),
    "no version": document_reply(b"whole\n", Mergepub_Version=""),
    "version 0": document_reply(b"whole\n", Mergepub_Version="0"),
    "a version in other digits": document_reply(b"whole\n", Mergepub_Version="\xb2"),
    "no incarnation": document_reply(b"whole\n", Mergepub_Incarnation=""),
    "a cut body": document_reply(b"whole\n").removesuffix(b"e\n"),
    "another version than asked": document_reply(b"whole\n", version=6),
}


@pytest.mark.parametrize("answer", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS.keys())
def test_a_document_that_does_not_fit_its_headers_is_no_document(server: Server, answer: bytes) -> None:
    with pytest.raises(UnavailableError):
        store_on(server(answer)).fetch(PATH, 5)


def test_a_true_document_is_taken(server: Server) -> None:
    true = document_reply(b"\xff\r\n\0", Mergepub_Author="UTF-8''J%C3%B6rg", Mergepub_Message="plain")
    document = store_on(server(true)).fetch(PATH)
    assert document.body == b"\xff\r\n\0"
    assert (document.version, document.current) == (Version(5, '"aa-5"', f"{PATH}/v5"), 5)
    assert (document.author, document.message, document.modified) == ("Jörg", "plain", "2026-11-30T10:00:00Z")


BAD_PAGES = {
    "rows that are no list": {"versions": 5},
    "rows that are no objects": {"versions": [5]},
    "rows without a digest": {"versions": [{"version": 1}]},
    "no rows": {},
}


@pytest.mark.parametrize("page", BAD_PAGES.values(), ids=BAD_PAGES.keys())
def test_a_page_in_another_form_is_no_history(server: Server, page: object) -> None:
    with pytest.raises(UnavailableError, match="promised"):
        list(store_on(server(json_reply(200, page))).versions(PATH))


def _history_row(version: int) -> dict[str, object]:
    return {"version": version, "digest": "d", "size": 1, "author": "", "message": "", "modified": ""}


def test_pages_that_do_not_advance_end_in_an_error_and_not_in_a_loop(server: Server) -> None:
    again = json_reply(200, {"versions": [_history_row(3)]}, Link='</-/versions/docs/guide.md?after=3>; rel="next"')
    with pytest.raises(UnavailableError, match="out of order"):
        list(store_on(server(again)).versions(PATH))


def test_a_next_page_on_another_host_is_not_read(server: Server) -> None:
    elsewhere = server(json_reply(200, {"versions": []}))
    for target in (f"{elsewhere.url}/-/versions/x", "//elsewhere/x", "http://[::1/x"):
        page = json_reply(200, {"versions": [_history_row(3)]}, Link=f'<{target}>; rel="next"')
        with pytest.raises(UnavailableError, match="next page"):
            list(store_on(server(page), token=SECRET).versions(PATH))
    assert elsewhere.requests == []


def test_pages_are_followed_lazily_to_the_last(server: Server) -> None:
    first = json_reply(200, {"versions": [_history_row(3), _history_row(2)]}, Link='<?after=2>; rel="next"')
    paged = server(first, json_reply(200, {"versions": [_history_row(1)]}))
    rows = store_on(paged).versions(PATH)
    assert next(rows).version == 3
    assert len(paged.requests) == 1
    assert [row.version for row in rows] == [2, 1]
    assert paged.requests[1].target == "/-/versions/docs/guide.md?after=2"


REFUSALS: dict[str, tuple[bytes, Version, type[MergepubError], int]] = {
    "400": (problem(400), AT_4, RejectedError, 2),
    "401": (reply(401), AT_4, DeniedError, 3),
    "403": (reply(403, b"no", kind="text/plain"), AT_4, DeniedError, 3),
    "404": (problem(404), AT_4, NotFoundError, 4),
    "410": (problem(410, **{"current-version": 7}), AT_4, DocumentDeletedError, 3),
    "412": (problem(412, **{"current-version": 7}), AT_4, VersionConflictError, 3),
    "412 on a create": (problem(412, **{"current-version": 7}), ABSENT, DocumentExistsError, 3),
    "412 deleted": (problem(412, **{"current-version": 7, "reason": "deleted"}), AT_4, DocumentDeletedError, 3),
    "412 recreated": (problem(412, **{"current-version": 7, "reason": "recreated"}), AT_4, RecreatedError, 3),
    "412 never existed": (problem(412, **{"current-version": 0}), AT_4, NotFoundError, 4),
    "413": (problem(413, limit=1000), AT_4, RejectedError, 2),
    "413 of a proxy": (reply(413, HTML, kind="text/html"), AT_4, RejectedError, 2),
    "421": (problem(421), AT_4, InputError, 2),
    "422": (problem(422), AT_4, RejectedError, 2),
    "428": (problem(428), AT_4, MergepubError, 1),
    "429": (reply(429, Retry_After="9"), AT_4, ThrottledError, 4),
}


@pytest.mark.parametrize(("answer", "expected", "error", "status"), REFUSALS.values(), ids=REFUSALS.keys())
def test_every_refusal_is_its_own_error(
    server: Server, answer: bytes, expected: Version, error: type[MergepubError], status: int
) -> None:
    with pytest.raises(error) as caught:
        publish(store_on(server(answer)), expected)
    assert type(caught.value) is error
    assert caught.value.exit_status == status
    assert getattr(caught.value, "current", 7) == 7
    assert getattr(caught.value, "after", 9) == 9


def test_a_limit_is_named_in_the_error(server: Server) -> None:
    with pytest.raises(RejectedError, match="1000 bytes") as caught:
        publish(store_on(server(problem(413, limit=1000))))
    assert caught.value.limit == 1000


def test_a_wait_is_taken_from_seconds_and_dates_and_held_below_an_hour(server: Server) -> None:
    for value, wait in (("7", 7.0), ("999999999999", 3600.0), ("Mon, 30 Nov 2015 10:00:00 GMT", 0.0), ("soon", None)):
        with pytest.raises(UnavailableError) as caught:
            store_on(server(reply(503, Retry_After=value))).fetch(PATH)
        assert caught.value.after == wait


def test_an_unclear_answer_is_quoted_short_and_harmless_for_a_terminal(server: Server) -> None:
    with pytest.raises(UnavailableError) as caught:
        publish(store_on(server(reply(502, HTML + b"x" * 5000, kind="text/html"))))
    said = str(caught.value)
    assert "502" in said
    assert "Bad <b>Gateway</b>\\x1b[31m" in said
    assert "\x1b" not in said
    assert len(said) < 600


def test_a_deleted_document_is_not_found_and_names_its_tombstone(server: Server) -> None:
    with pytest.raises(NotFoundError) as caught:
        store_on(server(problem(410, **{"current-version": 7}))).fetch(PATH)
    assert caught.value.tombstone == 7


# -- a yes that names no version ---------------------------------------------------------------------------------------

EMPTY_YES = reply(201)


def test_a_yes_without_a_version_is_a_success_when_the_body_is_there_at_expected_plus_one(server: Server) -> None:
    receipt = publish(store_on(server(EMPTY_YES, document_reply(BODY, 5))))
    assert (receipt.version.number, receipt.replayed, receipt.current) == (5, True, None)


def test_a_yes_without_a_version_is_found_behind_a_newer_head(server: Server) -> None:
    receipt = publish(store_on(server(EMPTY_YES, document_reply(b"newer\n", 7), document_reply(BODY, 5))))
    assert (receipt.version.number, receipt.replayed, receipt.current) == (5, True, 7)


def test_a_created_document_of_later_life_is_found_as_the_head(server: Server) -> None:
    receipt = publish(store_on(server(EMPTY_YES, document_reply(BODY, 9), document_reply(b"first life", 1))), ABSENT)
    assert (receipt.version.number, receipt.replayed) == (9, True)


@pytest.mark.parametrize(
    "looked_up",
    [
        [document_reply(b"other\n", 5)],
        [document_reply(BODY, 4)],
        [document_reply(BODY, 6), document_reply(b"other\n", 5)],
        [document_reply(b"newer\n", 7), document_reply(BODY, 5, Mergepub_Incarnation="earlier")],
        [problem(404)],
        [problem(410, **{"current-version": 5})],
        [reply(500)],
    ],
    ids=["other body", "not yet", "unchanged head", "earlier incarnation", "missing", "deleted", "down"],
)
def test_a_yes_without_a_version_stays_unknown_when_the_body_is_not_there(server: Server, looked_up: list) -> None:
    with pytest.raises(UnknownOutcomeError):
        publish(store_on(server(EMPTY_YES, *looked_up)))


def test_a_delete_without_a_version_is_a_success_when_the_tombstone_is_there(server: Server) -> None:
    there = server(reply(204), problem(410, **{"current-version": 5}))
    receipt = store_on(there).delete(PATH, AT_4)
    assert (receipt.version.number, receipt.replayed) == (5, True)


# -- the retry publishes once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [RESET, HANG, reply(502, HTML), NO_CLEAR_ANSWER["half a body"], b""])
def test_repeating_after_a_lost_answer_publishes_once(server: Server, lost: object) -> None:
    service = Committing(PATH, lost, lost)
    store = store_on(server(service), policy=RetryPolicy.instant())
    receipt = publish(store, ABSENT)
    assert (receipt.version.number, receipt.replayed) == (1, True)
    assert [row.version for row in service.store.versions(PATH)] == [1]


def test_a_create_whose_answer_was_lost_does_not_bring_back_what_was_deleted_since(server: Server) -> None:
    life = [_history_row(2) | {"deleted": True}, _history_row(1) | {"digest": digest_of(BODY)}]
    deleted = server(RESET, json_reply(200, {"versions": life}))
    with pytest.raises(DocumentDeletedError, match="while the answer was lost") as caught:
        publish(store_on(deleted, policy=RetryPolicy.instant()), ABSENT)
    assert (caught.value.expected, caught.value.current) == (0, 2)
    assert [request.method for request in deleted.requests] == ["PUT", "GET"]


@pytest.mark.parametrize(
    "history",
    [
        problem(404),
        json_reply(200, {"versions": []}),
        json_reply(200, {"versions": [_history_row(2) | {"deleted": True}, _history_row(1)]}),
        json_reply(200, {"versions": [_history_row(1) | {"digest": digest_of(BODY)}]}),
    ],
    ids=["never there", "no history", "an earlier life with another body", "there"],
)
def test_a_create_whose_answer_was_lost_is_repeated_where_that_is_recognised(server: Server, history: bytes) -> None:
    there = server(RESET, history, json_reply(201, {"version": 3}))
    assert publish(store_on(there, policy=RetryPolicy.instant()), ABSENT).version.number == 3
    assert [request.method for request in there.requests] == ["PUT", "GET", "PUT"]


def test_an_append_is_repeated_with_its_key(server: Server) -> None:
    here = server(RESET, json_reply(200, {"version": 5, "replayed": True}))
    assert store_on(here, policy=RetryPolicy.instant()).append(PATH, BODY, key="k1").replayed
    assert [request.headers["idempotency-key"] for request in here.requests] == ["k1", "k1"]


def test_the_wait_that_the_store_asks_for_is_kept(server: Server) -> None:
    waits: list[float] = []
    busy = server(reply(503, Retry_After="7"), reply(429, Retry_After="600"), RESET, document_reply(BODY))
    store = store_on(busy, policy=RetryPolicy(sleep=waits.append))
    assert store.fetch(PATH).body == BODY
    assert waits[:2] == [7.0, 30.0]
    assert 0.1 < waits[2] < 1


@pytest.mark.parametrize("not_written", [problem(408), problem(503), problem(429)])
def test_what_was_surely_not_written_is_asked_again_and_is_no_unknown_outcome(
    server: Server, not_written: bytes
) -> None:
    busy = server(not_written, json_reply(201, {"version": 5}))
    assert publish(store_on(busy, policy=RetryPolicy.instant())).version.number == 5
    with pytest.raises(UnavailableError) as caught:
        publish(store_on(server(not_written)))
    assert not isinstance(caught.value, UnknownOutcomeError)


def test_attempts_end_with_the_policy(server: Server) -> None:
    down = server(reply(500))
    with pytest.raises(UnavailableError):
        store_on(down, policy=RetryPolicy.instant(3)).fetch(PATH)
    assert len(down.requests) == 3


@pytest.mark.parametrize("answer", [reply(302, Location="/x"), reply(403), problem(412), problem(413), reply(404)])
def test_a_no_is_not_asked_again(server: Server, answer: bytes) -> None:
    firm = server(answer)
    with pytest.raises(MergepubError):
        publish(store_on(firm, policy=RetryPolicy.instant()))
    assert len(firm.requests) == 1


@pytest.mark.parametrize("later", [reply(403), reply(302, Location="/x"), reply(429), reply(503), reply(404, HTML)])
def test_a_write_that_may_have_happened_stays_unknown_whatever_a_later_attempt_meets(
    server: Server, later: bytes
) -> None:
    with pytest.raises(UnknownOutcomeError):
        publish(store_on(server(RESET, later), policy=RetryPolicy.instant()))


# -- redirects and secrets ---------------------------------------------------------------------------------------------


def test_a_redirect_to_another_host_is_neither_followed_nor_told_the_secret(server: Server) -> None:
    elsewhere = server(document_reply(b"bait\n"))
    here = server(reply(302, Location=elsewhere.url + PATH))
    with pytest.raises(UnavailableError, match=elsewhere.url):
        store_on(here, token=SECRET).fetch(PATH)
    with pytest.raises(UnavailableError, match=elsewhere.url):
        publish(store_on(here, token=SECRET))
    assert elsewhere.requests == []
    assert here.requests[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_read_follows_redirects_on_its_own_host_and_not_in_circles(server: Server) -> None:
    moved = server(reply(301, Location="/new/place"), document_reply(b"here\n"))
    assert store_on(moved).fetch(PATH).body == b"here\n"
    assert [request.target for request in moved.requests] == [PATH, "/new/place"]
    with pytest.raises(UnavailableError, match="circles"):
        store_on(server(reply(302, Location="/around"))).fetch(PATH)


def test_no_message_repeats_the_secret_even_when_the_server_does(server: Server) -> None:
    def debugging(request: Request) -> bytes:
        return reply(500, f"you sent {request.headers['authorization']}".encode(), kind="text/plain")

    def explaining(request: Request) -> bytes:
        return problem(403, detail=f"{request.headers['authorization']} may not")

    for answer in (debugging, explaining):
        with pytest.raises(MergepubError) as caught:
            publish(store_on(server(answer), token=SECRET))
        assert SECRET not in repr(caught.value) + str(caught.value)
        assert "***" in str(caught.value)


@pytest.mark.parametrize("url", ["http://docs.example.com", "http://10.0.0.1:8470", "http://localhost.evil.example"])
def test_a_secret_never_travels_unencrypted_to_another_machine(url: str) -> None:
    with pytest.raises(InputError, match="plain HTTP") as caught:
        HttpStore(url, token=SECRET).fetch(PATH)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"http://bot:{SECRET}@127.0.0.1",
        f"https://{SECRET}@host",
        "http://",
        "http://host:port",
        "http://h/?a=b",
        "ftp://h",
    ],
)
def test_a_url_that_is_no_store_or_holds_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InputError) as caught:
        HttpStore(url)
    assert SECRET not in str(caught.value)


def test_the_secret_comes_from_file_variable_and_netrc_in_this_order(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    here = server(document_reply(b"x"))
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login bot password from-netrc\nmachine other password nothing\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    store_on(here).fetch(PATH)
    monkeypatch.setenv("MERGEPUB_TOKEN", "from-variable")
    store_on(here).fetch(PATH)
    token_file = tmp_path / "token"
    token_file.write_text("from-file\n")
    store_on(here, token_file=token_file).fetch(PATH)
    sent = [request.headers["authorization"] for request in here.requests]
    assert sent == ["Bearer from-netrc", "Bearer from-variable", "Bearer from-file"]


def test_a_token_file_that_is_missing_empty_or_no_token_is_refused(tmp_path) -> None:
    broken = tmp_path / "token"
    for content in (None, "", "two words", "caf\xe9", "a\nb"):
        if content is not None:
            broken.write_text(content)
        with pytest.raises(InputError, match="token"):
            HttpStore("http://127.0.0.1:1", token_file=broken).fetch(PATH)


def test_a_loopback_store_is_asked_past_the_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    here, proxy = server(document_reply(b"direct\n")), server(document_reply(b"proxied\n"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    assert store_on(here, token=SECRET).fetch(PATH).body == b"direct\n"
    assert proxy.requests == []


def test_what_is_sent_is_what_the_wire_names(server: Server) -> None:
    here = server(json_reply(201, {"version": 5}))
    store = store_on(here)
    store.publish("/dócs/a b%2F?.md", b"", AT_4, author="Jörg", message="two\nlines", source="abc123")
    store.publish(PATH, BODY, Version(4, '"aa-4"'))
    first, second = here.requests
    assert first.target == "/d%C3%B3cs/a%20b%252F%3F.md"
    assert (first.headers["content-length"], first.headers["accept-encoding"]) == ("0", "identity")
    assert first.headers["mergepub-expected-version"] == "4"
    assert first.headers["mergepub-author"] == "UTF-8''J%C3%B6rg"
    assert first.headers["mergepub-message"] == "UTF-8''two%0Alines"
    assert second.headers["if-match"] == '"aa-4"'
    assert "authorization" not in second.headers
