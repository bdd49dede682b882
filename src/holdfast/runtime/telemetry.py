"""Spans of OpenTelemetry, made of the events of a session: what a run did, and for how long.

The names are those of the semantic conventions for generative models. A run is `invoke_agent`, in
it each request is `chat` and each call `execute_tool`. Times come from the events, so a log that is
read later gives the same spans. What was said is in them only where that was asked for. Whoever
does not use this does not load OpenTelemetry, which is the extra `otel`.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.core.events import (
    Event,
    Finish,
    ModelFailed,
    ModelReplied,
    Outcome,
    Reopened,
    RunStopped,
    ToolFinished,
    ToolStarted,
)
from holdfast.core.fold import evolve
from holdfast.core.history import OpenCall
from holdfast.core.limits import Spent, StopReason, Usage
from holdfast.core.messages import clean
from holdfast.core.state import NEW, Run, State
from holdfast.runtime.told import open_call, waiting

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue

    Attributes = Mapping[str, AttributeValue]

AGENT = "holdfast"
PROVIDERS = {"google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
"""Where our name for a provider is not the one of the conventions."""
MODEL = "gen_ai.request.model"
CRASHED, GIVEN_UP = "crashed", "given up"


class Telemetry:
    """Fed with the events of one session, in their order. `close` ends whatever is open."""

    def __init__(
        self, tracer: "Tracer", session: str, state: State = NEW, *, content: bool = False
    ) -> None:
        """`state`: where a log is taken up. A run that is going on then gets a span for what is
        left of it. `content`: also what was said, asked and returned."""
        self._tracer = tracer
        self._session = session
        self._state = state
        self._content = content
        self._run: Span | None = None
        self._chat: Span | None = None
        self._tools: dict[str, Span] = {}
        self._now = 0

    def stored(self, event: Event) -> None:
        before, self._state = self._state, evolve(self._state, event)
        self._now = max(self._now, round((self._state.now or 0.0) * 1e9))
        run = self._state.run
        if run is None:
            return
        if self._run is None:
            self._begin(run, resumed=before.runs == self._state.runs)
        self._chats(event, before, run)
        self._calls(event, before)
        if isinstance(event, RunStopped):
            self._stop(event, run)

    def close(self) -> None:
        """The process ends, or nobody wants to know any more."""
        self._end_chat(GIVEN_UP)
        self._end_tools(GIVEN_UP)
        if self._run is not None:
            self._run.end(self._now)
            self._run = None

    # --- the run --------------------------------------------------------------------------------

    def _begin(self, run: Run, *, resumed: bool) -> None:
        if run.stopped:
            return  # something came after its end
        self._run = self._tracer.start_span(
            f"invoke_agent {AGENT}",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": AGENT,
                "gen_ai.conversation.id": self._session,
                **model_of(run.settings.model),
                "holdfast.run": run.number,
                "holdfast.resumed": resumed,
            },
            start_time=self._now,
        )
        if self._content:
            task = self._state.history.spoken[0].text if self._state.history.spoken else ""
            self._run.set_attribute("gen_ai.input.messages", message("user", task))

    def _stop(self, event: RunStopped, run: Run) -> None:
        self._end_tools(GIVEN_UP)
        if self._run is None:
            return
        self._run.set_attributes(tokens(run.spent))
        self._run.set_attribute("holdfast.stop_reason", event.reason.value)
        if self._content:
            self._run.set_attribute("gen_ai.output.messages", message("assistant", event.text))
        if event.reason is StopReason.MODEL_FAILED:
            fail(self._run, event.reason.value, run.failed)
        self._run.end(self._now)
        self._run = None

    # --- requests -------------------------------------------------------------------------------

    def _chats(self, event: Event, before: State, run: Run) -> None:
        was, now = waiting(before), waiting(self._state)
        if was is not None and (now is None or now.ask != was.ask):
            match event:
                case ModelReplied(ask) if ask == was.ask:
                    self._replied(event)
                case ModelFailed(ask, failure, detail) if ask == was.ask:
                    self._end_chat(failure.value, detail)
                case Reopened():
                    self._end_chat(CRASHED)
                case _:
                    self._end_chat(GIVEN_UP)
        if now is not None and (was is None or was.ask != now.ask):
            model = model_of(run.settings.model)
            attributes = {
                "gen_ai.conversation.id": self._session,
                "gen_ai.request.max_tokens": run.settings.budget.output,
                **model,
                "holdfast.ask": now.ask,
                "holdfast.purpose": now.purpose.value,
            }
            self._chat = self._started("chat", str(model.get(MODEL, "")), attributes)

    def _replied(self, event: ModelReplied) -> None:
        if self._chat is None:
            return
        reply = event.reply
        finish = "content_filter" if reply.finish is Finish.REFUSED else reply.finish.value
        if reply.calls and reply.finish is Finish.STOP:
            finish = "tool_calls"
        self._chat.set_attribute("gen_ai.response.finish_reasons", [finish])
        if event.by:
            self._chat.set_attribute("gen_ai.response.model", event.by)
        if event.usage:
            self._chat.set_attributes(tokens(event.usage))
        if self._content:
            self._chat.set_attribute("gen_ai.output.messages", message("assistant", reply.text))
        self._end_chat()

    def _end_chat(self, error: str = "", detail: str = "") -> None:
        if self._chat is not None:
            fail(self._chat, error, detail)
            self._chat.end(self._now)
            self._chat = None

    # --- calls ----------------------------------------------------------------------------------

    def _calls(self, event: Event, before: State) -> None:
        match event:
            case ToolStarted(call_id):
                each = open_call(self._state, call_id)
                if each is not None:
                    self._crashed(call_id)
                    self._tools[call_id] = self._call(each)
            case ToolFinished(call_id):
                each = open_call(before, call_id)
                if each is not None:  # else it is late, and its span has ended
                    under_way = call_id in self._tools
                    span = self._tools.pop(call_id) if under_way else self._call(each)
                    self._finished(span, event)
            case _:
                return

    def _call(self, each: OpenCall) -> "Span":
        attributes: dict[str, AttributeValue] = {
            "gen_ai.tool.name": each.call.name,
            "gen_ai.tool.call.id": each.call.id,
            "gen_ai.tool.type": "function",
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = clean(each.call.arguments)
        return self._started("execute_tool", each.call.name, attributes)

    def _finished(self, span: "Span", event: ToolFinished) -> None:
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", clean(event.text))
        if event.outcome is not Outcome.DONE:
            fail(span, event.outcome.value)
        span.end(self._now)

    def _crashed(self, call_id: str) -> None:
        """It runs again, because the process died while it ran."""
        if span := self._tools.pop(call_id, None):
            fail(span, CRASHED)
            span.end(self._now)

    def _end_tools(self, error: str) -> None:
        for span in self._tools.values():
            fail(span, error)
            span.end(self._now)
        self._tools.clear()

    def _started(self, operation: str, what: str, attributes: "Attributes") -> "Span":
        """A span inside that of the run."""
        from opentelemetry.trace import SpanKind, set_span_in_context

        return self._tracer.start_span(
            f"{operation} {what}".strip(),
            context=None if self._run is None else set_span_in_context(self._run),
            kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
            attributes={"gen_ai.operation.name": operation, **attributes},
            start_time=self._now,
        )


def model_of(name: str) -> "Attributes":
    """A model and who provides it, where its name says so: `ollama/qwen3:8b`."""
    if not name:
        return {}
    provider, slash, model = name.partition("/")
    if not slash or "://" in name:
        return {MODEL: name}
    known = PROVIDERS.get(provider, provider)
    return {"gen_ai.provider.name": known, MODEL: model}


def tokens(used: Usage | Spent) -> "Attributes":
    return {
        "gen_ai.usage.input_tokens": used.prompt,
        "gen_ai.usage.output_tokens": used.completion,
        "gen_ai.usage.cache_read.input_tokens": used.cached,
    }


def message(role: str, text: str) -> str:
    parts = [{"type": "text", "content": clean(text)}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def fail(span: "Span", error: str, detail: str = "") -> None:
    """Mark a span as failed; an empty `error` leaves it as it is."""
    if not error:
        return
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR, clean(detail) or None))
