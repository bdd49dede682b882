"""A world in which everything goes wrong, from one seed: a model, its server, tools, a user, a
clock and a process that dies.

`play` lets a whole session happen in it, through the real machine, and has the laws watched
after every step. Nothing here is asynchronous or slow: time is a number, and a crash is a
shorter log.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from holdfast.core.effects import CallModel, Effect, RunTools, StopWork
from holdfast.core.events import (
    USER,
    CancelAsked,
    Charged,
    Decided,
    Event,
    Failure,
    FileKept,
    FilesRestored,
    Finish,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Outcome,
    Pinned,
    Purpose,
    Reply,
    RunStopped,
    TimeRanOut,
    ToolFinished,
    ToolsChanged,
    ToolsFound,
    ToolStarted,
    UserSpoke,
    Verdict,
    Waited,
    WantedCall,
)
from holdfast.core.limits import (
    Contradiction,
    Limits,
    OnLimit,
    Patience,
    Settings,
    Usage,
)
from holdfast.core.machine import recover, step
from holdfast.core.messages import ToolCall
from holdfast.core.state import NEW, State
from holdfast.core.tokens import BUDDY, CLASSES, LOCALCOWORK, Gauge, Size
from holdfast.core.tools import Keep, SideEffect, ToolSpec, resolve
from holdfast.testing.laws import INVENTED, Laws, holds

ALPHABETS = (
    "the quick brown fox jumps over the lazy dog and reads report_2026.txt twice. ",
    '{"id": "INV-2041", "path": "/home/ana/receipts/scan 04.png", "total": 1284.50, "paid": false}, ',
    "2026-03-14 09:26:53,589 79.32 3846 2643 38327 950 288 ",
    "读取文件并将结果写入表格。 领収書を読む。 ",
    "🙂👩‍👩‍👧‍👦 ñandú Größe дверь باب ",
    "lone \ud800 surrogate, NUL \0, tab\t, two\r\nlines ",
)
TEXTS = tuple((alphabet * (60_000 // len(alphabet)))[:60_000] for alphabet in ALPHABETS)

TOOLS = (
    ToolSpec(name="files.read", description="Read a file.", effect=SideEffect.READ, mutates=False),
    ToolSpec(
        name="files.list", description="List a folder.", effect=SideEffect.READ, mutates=False
    ),
    ToolSpec(name="files.move", description="Move a file.", parameters='{"type":"object"}'),
    ToolSpec(name="mail.send", description="Send a mail.", keep=Keep.ENDS),
    ToolSpec(name="put", description="Store a value.", effect=SideEffect.IDEMPOTENT, cap=400),
    ToolSpec(
        name="wait", description="Look again.", effect=SideEffect.READ, mutates=False, polls=True
    ),
    ToolSpec(
        name="cite", description="Open a citation.", mutates=False, keep_last=3, keep=Keep.TAIL
    ),
    ToolSpec(name="read_result", description="Read the rest.", mutates=False),
    ToolSpec(name="find_tools", description="Find a tool.", effect=SideEffect.READ, mutates=False),
)


@dataclass
class World:
    """One seeded session, and what befell it."""

    random: Random
    laws: Laws = field(default_factory=Laws)
    faults: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    log: list[Event] = field(default_factory=list)
    now: float = 1_000.0
    pending: list[FromTheWorld] = field(default_factory=list)
    server: "Server" = field(init=False)
    habit: str = "mixed"

    def __post_init__(self) -> None:
        self.server = Server(self.random, self.faults)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def happens(self, probability: float, fault: str) -> bool:
        if self.random.random() < probability:
            self.faults[fault] += 1
            return True
        return False

    def play(self) -> None:
        state = NEW
        settings = self.settings()
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            if self.happens(0.1, "settings change between runs"):
                settings = self.settings()
            self.habit = self.random.choice(HABITS)
            self.server.window = settings.budget.window
            if self.happens(0.1, "server's window is smaller than the settings say"):
                self.server.window = int(settings.budget.window * self.random.uniform(0.3, 0.95))
            self.pending.append(UserSpoke(self.words(), self.tick(), settings))
            state = self.live(state)
        if self.chance(0.25):  # folding a log twice costs as much as all the rest
            self.laws.end()

    def live(self, state: State) -> State:
        """Until the run has stopped and nothing is on its way any more, or nobody waits for it."""
        for _ in range(3_000):
            if state.run and state.run.stopped and self.chance(0.7):
                self.pending = [event for event in self.pending if self.chance(0.3)]
                break
            if not self.pending:
                break
            event = self.next_event(state)
            before = state
            done = step(state, event)
            self.log.extend(done.events)
            self.laws.saw(before, done)
            if self.happens(0.01, "crash while events are written"):
                state = self.reborn(self.random.randint(0, len(done.events)), len(done.events))
                continue
            state = done.state
            self.note_stops(done.events)
            self.perform(event, done.effects, state)
            if self.happens(0.01, "crash after events are written"):
                state = self.reborn(len(done.events), len(done.events))
        holds(state.run is not None and state.run.stopped is not None, 5, "the run never ends")
        return state

    def reborn(self, kept: int, of: int) -> State:
        """A new process on the same log: everything that was on its way is gone."""
        del self.log[len(self.log) - (of - kept) :]
        self.pending.clear()
        state = self.laws.crashed(kept)
        if state.run is None:  # not even the user's message was on disk: the user sends it again
            self.pending.append(UserSpoke(self.words(), self.tick(), self.settings()))
            return state
        done = recover(state, self.tick() + 3_600)
        if done.events:
            self.log.extend(done.events)
            self.laws.saw(state, done, recovered=True)
        self.note_stops(done.events)
        if done.state.run and done.state.run.stopped and kept == 0:
            self.pending.append(UserSpoke(self.words(), self.tick(), self.settings()))
        self.perform(None, done.effects, done.state)
        return done.state

    def note_stops(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, RunStopped):
                self.stops[event.reason.value] += 1

    def next_event(self, state: State) -> FromTheWorld:
        """Something that is on its way arrives, or the user or the clock does something."""
        running = state.run is not None and not state.run.stopped
        if self.happens(0.015, "cancel"):
            return CancelAsked(self.tick())
        if running and self.happens(0.02, "user steers"):
            return UserSpoke(self.words(), self.tick())
        if running and self.happens(0.006, "tools come and go"):
            kept = tuple(tool for tool in TOOLS if self.chance(0.7))
            return ToolsChanged(kept, self.tick())
        if running and self.happens(0.006, "shelved tools are found"):
            return ToolsFound(("files.move", "mail.send"), self.tick())
        if self.happens(0.006, "something is pinned"):
            return Pinned("plan", self.text(400), self.tick())
        if state.run and self.happens(0.004, "time runs out"):
            late = self.happens(0.2, "alarm of an older run")
            return TimeRanOut(state.run.number - late, self.tick())
        if self.happens(0.004, "clock jumps back"):
            self.now -= 500
        place = self.random.randrange(len(self.pending)) if self.chance(0.3) else 0
        return self.pending.pop(place)

    def perform(self, event: Event | None, effects: tuple[Effect, ...], state: State) -> None:
        """What a driver does: ask the server, run the tools, give up what nobody wants."""
        if isinstance(event, ToolStarted):
            self.run_tool(event.call_id, state)
        for effect in effects:
            match effect:
                case CallModel():
                    self.pending.extend(self.answers(effect, state))
                case RunTools(calls):
                    for call in calls:
                        self.pending.extend(self.through_the_gateway(call))
                case StopWork():
                    if not self.happens(0.5, "late result after a cancel"):
                        self.pending.clear()

    def through_the_gateway(self, call: ToolCall) -> Iterator[FromTheWorld]:
        """What a gateway reports of a call before it runs: the answer of a person, and a start."""
        if self.happens(0.03, "person refuses"):
            yield Decided(call.id, Verdict.REFUSED, self.tick(), USER, words=self.text(30))
            yield ToolFinished(call.id, Outcome.NOT_RUN, "The user said no.", self.tick())
            return
        if self.happens(0.05, "person allows"):
            changed = self.happens(0.4, "person changes the arguments")
            arguments = '{"path": "changed.txt", "n": 3}' if changed else ""
            rule = self.random.choice(("", f"{call.name}(*)"))
            yield Decided(call.id, Verdict.ALLOWED, self.tick(), USER, arguments, rule)
        yield ToolStarted(call.id, self.tick())
        if self.happens(0.05, "file kept"):
            yield FileKept(call.id, "a.txt", "0" * 64, self.tick())
        if self.happens(0.02, "tool spends"):
            yield Charged(call.id, Usage(prompt=200, completion=20, cost=3), self.tick())
        if self.happens(0.01, "person fills in a form"):
            yield Waited(self.tick())
        if self.happens(0.01, "changes taken back"):
            yield FilesRestored(("a.txt", "b.txt"), self.tick())

    def run_tool(self, call_id: str, state: State) -> None:
        run = state.run
        each = next((one for one in run.open if one.call.id == call_id), None) if run else None
        if each is None:
            return
        self.laws.tool_ran(call_id, resolve(each.call.name, TOOLS))
        self.pending.append(self.result(each.call))
        if self.happens(0.02, "result delivered twice"):
            self.pending.append(self.result(each.call))

    def result(self, call: ToolCall) -> ToolFinished:
        outcome = Outcome.DONE
        if self.habit == "failing tools" and self.chance(0.9) or self.happens(0.1, "tool fails"):
            outcome = Outcome.FAILED
        elif self.happens(0.03, "tool times out"):
            outcome = Outcome.TIMED_OUT
        if self.habit in ("repeats", "circles") and self.chance(0.9):
            text = f"result of {call.name} {call.arguments}"
        elif self.happens(0.05, "enormous result"):
            text = self.text(20_000)
        elif self.happens(0.03, "empty result"):
            text = ""
        else:
            text = f"{call.arguments}: {self.text(self.random.choice((20, 300, 2_000, 9_000)))}"
        return ToolFinished(call.id, outcome, text, self.tick())

    def answers(self, effect: CallModel, state: State) -> Iterator[FromTheWorld]:
        """What the server makes of a request: a refusal, a failure, or a reply of the model."""
        refusal = self.server.refuses(effect, state, self.tick())
        if refusal is not None:
            yield refusal
            return
        if self.happens(0.01, "model fails for good"):
            kind = self.random.choice(
                (Failure.GONE, Failure.GARBLED, Failure.BUSY, Failure.REJECTED)
            )
            yield ModelFailed(effect.ask, kind, self.text(60), self.tick())
            return
        reply = self.reply(effect)
        if effect.purpose is Purpose.CONCLUDE:
            reply = self.concluding()
        elif effect.purpose is Purpose.SUMMARISE:
            reply = self.summary(state)
        yield ModelReplied(effect.ask, reply, self.tick(), self.server.usage(state, reply))
        if self.happens(0.01, "reply delivered twice"):
            yield ModelReplied(effect.ask, self.reply(effect), self.tick())

    def concluding(self) -> Reply:
        if self.happens(0.25, "silent conclusion"):
            return Reply(text=self.random.choice(("", "  \n", "<tool_call>{}</tool_call>")))
        if self.happens(0.3, "lying conclusion"):
            n = self.random.randint(100, 999)
            return Reply(
                text=f"Renamed {INVENTED}{n}.png to {INVENTED}{n}b.png.\nAll {n} files are done.\n"
                f"- {INVENTED}total.csv: 98765.{n} processed"
            )
        if self.happens(0.1, "conclusion with calls"):
            return Reply(text="one more", calls=(self.wanted(),))
        return Reply(text="I was unable to complete the task.")

    def summary(self, state: State) -> Reply:
        files = [record.what for record in state.run.ledger.records] if state.run else []
        if self.happens(0.3, "summary that leaves out or invents"):
            files = [f"{INVENTED}file.txt"]
        return Reply(
            text=f"Task: go on\nConstraints: none\nFiles: {' '.join(files[-8:])}\n"
            "Decisions: none\nNext: go on"
        )

    def reply(self, effect: CallModel) -> Reply:
        habit = self.habit
        if habit == "silent" and self.chance(0.7) or self.happens(0.03, "empty reply"):
            return Reply(reasoning="hm" if self.chance(0.3) else "")
        if habit == "markup" and self.chance(0.6) or self.happens(0.02, "call written as text"):
            return Reply(text=self.random.choice(MARKUP))
        if self.happens(0.02, "call the client could not read"):
            return Reply(text="TOOL_CALL {", problem="The JSON after TOOL_CALL does not end.")
        if self.happens(0.02, "reply cut at the output limit"):
            calls = (self.wanted(), WantedCall("put", '{"index": 7')) if self.chance(0.5) else ()
            return Reply(text=self.text(200), calls=calls, finish=Finish.LENGTH)
        if self.happens(0.01, "model refuses"):
            return Reply(text="I cannot help with that.", finish=Finish.REFUSED)
        if self.happens(0.01, "endless reply"):
            return Reply(text=self.text(30_000))
        if habit == "short" and self.chance(0.5) or self.chance(0.08):
            return Reply(text="Done: " + self.text(80))
        if habit == "repeats":
            return Reply(calls=(WantedCall("files.read", '{"path": "a.txt"}', "x"),))
        if habit == "circles":
            name = ("put", "mail.send", "files.read")[effect.ask % 3]
            return Reply(calls=(WantedCall(name, '{"to": "a", "path": "b"}', "x"),))
        count = self.random.choice((1, 1, 1, 2, 3, 6))
        if self.happens(0.003, "a hundred calls at once"):
            count = 100
        return Reply(
            text=self.text(60) if self.chance(0.3) else "",
            calls=tuple(self.wanted() for _ in range(count)),
        )

    def wanted(self) -> WantedCall:
        name = self.random.choice(TOOLS).name
        arguments = f'{{"path": "f{self.random.randint(0, 400)}.txt"}}'
        if self.happens(0.04, "unknown tool"):
            name = self.random.choice(("files.raed", "", "x" * 500, "read", "rm -rf /"))
        if self.happens(0.04, "arguments that are not JSON"):
            arguments = self.random.choice(BROKEN)
        elif self.happens(0.02, "enormous arguments"):
            arguments = f'{{"path": "a", "content": "{"long text " * 1_500}"}}'
        if self.happens(0.3, "missing or repeated id"):
            return WantedCall(name, arguments, self.random.choice(("", "call_0")))
        return WantedCall(name, arguments, f"call_{self.random.randint(0, 10**9)}")

    def words(self) -> str:
        if self.happens(0.02, "user's message alone exceeds the window"):
            return self.text(60_000)
        if self.happens(0.01, "empty user message"):
            return "  "
        return (
            f"task {self.random.randint(0, 10**9)}: {self.text(self.random.choice((10, 80, 600)))}"
        )

    def text(self, length: int) -> str:
        whole = self.random.choice(TEXTS)
        start = self.random.randrange(64)
        return whole[start : start + length]

    def tick(self) -> float:
        self.now += self.random.choice((0.0, 0.1, 1.0, 3.0))
        return self.now

    def settings(self) -> Settings:
        """Numbers of every kind that do not contradict each other."""
        pick = self.random.choice
        tools = tuple(tool for tool in TOOLS if self.chance(0.9)) if self.chance(0.9) else ()
        window = pick((2_048, 4_096, 8_192, 8_192, 32_768, 131_072))
        base = Settings.for_window(window, tools=tools)
        try:
            return Settings(
                model=pick(("a", "b")),
                system=pick(("", "You are an agent.", TEXTS[0][:3_000])),
                tools=base.tools,
                budget=pick((base.budget, base.budget, replace(base.budget, evicts=False))),
                limits=Limits(
                    rounds=pick((1, 4, 12, 40, 40, 40)),
                    calls=pick((1, 6, 100, 100, 100, 100)),
                    tokens=pick((4_000, *[10**9] * 7)),
                    cost=pick((400, *[10**9] * 7)),
                    seconds=pick((20.0, *[1e9] * 7)),
                    reasks=pick((0, 1, 2)),
                    overflows=pick((0, 1, 4)),
                    calls_per_reply=pick((2, 64)),
                ),
                patience=pick(PATIENCE),
                caps=base.caps,
                rates=pick((CLASSES, LOCALCOWORK, BUDDY, LOCALCOWORK)),
                on_limit=pick((OnLimit.CONCLUDE, OnLimit.CONCLUDE, OnLimit.ERROR)),
                summaries=self.chance(0.3),
            )
        except Contradiction:
            return base


HABITS = (
    "mixed",
    "mixed",
    "mixed",
    "short",
    "repeats",
    "circles",
    "silent",
    "markup",
    "failing tools",
)
MARKUP = (
    '<tool_call>{"name": "put", "arguments": {}}</tool_call>',
    'TOOL_CALL {"tool": "put", "input": {}}',
    '```json\n{"name": "put", "arguments": {"a": 1}}\n```',
    '{"error": {"message": "internal", "code": 500}}',
)
BROKEN = (
    '{"path": ""/a"}',
    "{'a': 1}",
    "[1]",
    '{"a": ',
    "NaN",
    "\ud800",
    "[" * 500,
    '{"a": 1e999}',
    "",
)
PATIENCE = (
    Patience(),
    Patience(repeat_told=2, repeat_blocked=2, repeat_stopped=3, tool_failures=3),
    Patience(repeat_told=4, repeat_stopped=4, stale_told=3, stale_stopped=5),
)


def size_sent(state: State) -> Size:
    waiting = state.run.waiting if state.run else None
    return waiting.size if waiting else Size()


@dataclass
class Server:
    """Counts tokens its own way, refuses what does not fit, and does not always say why."""

    random: Random
    faults: Counter[str]
    window: int = 8_192
    counts: Gauge = field(default_factory=Gauge)
    reports: str = "honest"
    tells: str = "all"

    def __post_init__(self) -> None:
        spread = self.random.choice((0.0, 0.2, 0.5))
        weights = tuple(
            weight * self.random.uniform(1 - spread, 1 + 2 * spread) for weight in CLASSES.weights
        )
        self.counts = Gauge(replace(CLASSES, weights=weights, learns=False))
        self.reports = self.random.choice(("honest", "honest", "nothing", "nonsense"))
        self.tells = self.random.choice(("all", "window", "nothing"))

    def tokens(self, size: Size) -> int:
        return self.counts.expect(size).tokens

    def refuses(self, effect: CallModel, state: State, at: float) -> ModelFailed | None:
        tokens = self.tokens(size_sent(state))
        if tokens + effect.request.output <= self.window:
            return None
        self.faults[f"overflow, the server tells {self.tells}"] += 1
        return ModelFailed(
            effect.ask,
            Failure.OVERFLOW,
            "context size exceeded",
            at,
            window=self.window if self.tells in ("all", "window") else None,
            tokens=tokens if self.tells == "all" else None,
        )

    def usage(self, state: State, reply: Reply) -> Usage | None:
        if self.reports == "nothing":
            self.faults["no usage"] += 1
            return None
        tokens = self.tokens(size_sent(state))
        if self.reports == "nonsense":
            self.faults["nonsense usage"] += 1
            tokens = self.random.choice((0, -5, 7, tokens // 10, tokens * 50))
        return Usage(
            prompt=tokens, completion=len(reply.text) // 4 + 5, cost=self.random.choice((0, 90, 90))
        )
