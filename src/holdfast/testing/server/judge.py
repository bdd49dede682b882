"""What the strictest of servers would not take, said in sentences: one rule each.

Most servers are more forgiving, each in another place. A client that pleases this judge works
with all of them. The order of messages is judged here; how one API writes its fields, in `fields`.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.jsontext import json_object
from holdfast.testing.server.asked import ApiName, Asked, Made, Spoken
from holdfast.testing.server.fields import field_complaints
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received

NOT_AN_OBJECT = "The body is not a JSON object."
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What OpenAI and Anthropic take for the names of tools and the ids of calls."""
ROLES = ("system", "user", "assistant", "tool")
LONGEST_SHOWN = 60


def complaints(kind: Kind, asked: Asked, received: Received, window: int) -> Iterator[str]:
    yield from about_http(asked, received)
    yield from field_complaints(kind, asked)
    yield from about_roles(asked.messages)
    yield from about_calls(asked)
    yield from about_tools(asked)
    yield from about_size(asked, received.tokens, window)
    yield from about_characters(received.raw)


def about_http(asked: Asked, received: Received) -> Iterator[str]:
    given = received.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        yield f"The content type is {given!r}, and not application/json."
    if asked.api.name is ApiName.ANTHROPIC and "anthropic-version" not in received.headers:
        yield "The header anthropic-version is missing."


# --- who speaks when -----------------------------------------------------------------------------


def about_roles(messages: tuple[Spoken, ...]) -> Iterator[str]:
    for message in messages:
        if message.role not in ROLES:
            yield f"There is no role {message.role!r}, which {message.place} has."
    systems = [place for place, message in enumerate(messages) if message.role == "system"]
    if systems and systems != [0]:
        yield "The system prompt must be the first message, and the only one of its role."
    spoken = [message for message in messages if message.role != "system"]
    if not any(message.role == "user" for message in spoken):
        yield "There is no message of the user."
    elif spoken[0].role != "user":
        yield f"The user must speak first, and not the {spoken[0].role}."
    for before, message in pairwise(spoken):
        if before.role == message.role and message.role in ("user", "assistant"):
            yield f"The {message.role} speaks twice in a row, the second time in {message.place}."
    if spoken and spoken[-1].role == "assistant" and not spoken[-1].calls:
        yield "The last message is the assistant's: some servers go on with it, others refuse."
    for message in spoken:
        if message.text.strip() or message.calls or message.shows:
            continue
        if message.role == "user":
            yield f"The user says nothing in {message.place}."
        if message.role == "assistant":
            yield f"The assistant says nothing and calls nothing in {message.place}."


# --- calls and results ---------------------------------------------------------------------------


def about_calls(asked: Asked) -> Iterator[str]:
    needs_ids = asked.api.name is not ApiName.OLLAMA  # where they are matched by their order alone
    seen: list[object] = []
    open_calls: list[Made] = []
    for message in asked.messages:
        if message.role == "tool":
            yield from about_result(message, open_calls, needs_ids)
            continue
        yield from unanswered(open_calls, f"before {message.place}")
        open_calls = list(message.calls)
        for call in message.calls:
            yield from about_call(call, message.place, needs_ids)
            if call.id in seen:
                yield f"The id {shown(call.id)} is given to two calls, again in {message.place}."
            seen += [call.id] if call.id is not None else []
    yield from unanswered(open_calls, "at the end")


def about_result(message: Spoken, open_calls: list[Made], needs_ids: bool) -> Iterator[str]:
    """Takes the call that is answered out of `open_calls`."""
    if not open_calls:
        yield f"The result in {message.place} answers no call that is open."
        return
    if message.answers is None and not needs_ids:
        open_calls.pop(0)
        return
    ids = [call.id for call in open_calls]
    if message.answers not in ids:
        yield (
            f"The result in {message.place} is for the call {shown(message.answers)}, which is "
            "not open."
        )
        return
    if message.answers != ids[0]:
        yield f"The result in {message.place} comes before that of {shown(ids[0])}, out of order."
    del open_calls[ids.index(message.answers)]


def unanswered(open_calls: list[Made], when: str) -> Iterator[str]:
    for call in open_calls:
        yield f"The call {shown(call.id)} of {shown(call.name)} has no result {when}."


def about_call(call: Made, place: str, needs_ids: bool) -> Iterator[str]:
    if (needs_ids or call.id is not None) and not matches(ID, call.id):
        yield f"The id {shown(call.id)} of a call in {place} is not {ID.pattern}."
    if not matches(NAME, call.name):
        yield f"The name {shown(call.name)} of a call in {place} is not {NAME.pattern}."
    if isinstance(call.arguments, dict):
        return  # the APIs that want text complain of it where they judge fields
    try:
        json_object(call.arguments if isinstance(call.arguments, str) else "")
    except ValueError:
        yield f"The arguments of a call in {place} are not a JSON object: {shown(call.arguments)}."


# --- the rest ------------------------------------------------------------------------------------


def about_tools(asked: Asked) -> Iterator[str]:
    if asked.body.get("tools") == []:
        yield "The list of tools is empty: leave it out."
    if "tool_choice" in asked.body and not asked.tools:
        yield "There is a tool_choice, and there are no tools."
    names = [tool.name for tool in asked.tools]
    for tool in asked.tools:
        if not matches(NAME, tool.name):
            yield f"The name {shown(tool.name)} of a tool is not {NAME.pattern}."
        elif names.count(tool.name) > 1:
            yield f"More than one tool is named {shown(tool.name)}."
        schema = tool.parameters
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"The schema of the tool {shown(tool.name)} is not one of an object."


def about_size(asked: Asked, tokens: int, window: int) -> Iterator[str]:
    if asked.output is None:
        if asked.api.name is ApiName.ANTHROPIC:  # the only one that does not choose for the client
            yield "It is not said how many tokens the answer may take."
    elif asked.room is None:
        yield f"The answer may take {shown(asked.output)} tokens, which is no number above 0."
    output = asked.room or 0
    if tokens + output > window:
        yield (
            f"The request has {tokens} tokens and leaves {output} for the answer, which is more "
            f"than the window of {window}."
        )


def about_characters(raw: bytes) -> Iterator[str]:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        yield "The body is not UTF-8."
        return
    strings = "".join(strings_in(json.loads(text, parse_constant=str)))
    if "\0" in strings:
        yield "There is a NUL in a text."
    if any("\ud800" <= character <= "\udfff" for character in strings):
        yield "There is half a surrogate pair in a text."
    constants: list[str] = []
    json.loads(text, parse_constant=constants.append)
    yield from (f"{each} is not JSON." for each in dict.fromkeys(constants))


def strings_in(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(fields):
                waiting += [*fields, *fields.values()]
            case list(items):
                waiting += items


def matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
