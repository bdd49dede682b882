"""The one way to every tool: find it, read the arguments, judge, ask, run, and write down what came.

Whether a call may run is judged by `permissions`; running it is `running`. Who keeps the log and
talks to people stands behind the `Door`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from holdfast.core.events import USER, Decided, Outcome, ToolFinished, ToolStarted, Verdict
from holdfast.core.messages import ToolCall
from holdfast.core.tools import SideEffect, not_found
from holdfast.tools.base import BadArguments, Output, Tool, ToolError, Touch
from holdfast.tools.door import Answer, Door, Question, Read, Scope
from holdfast.tools.patterns import Kind, kind_of
from holdfast.tools.permissions import (
    LOOKS_ONLY,
    Judgement,
    Mode,
    Rules,
    Ruling,
    judge,
    suggestion,
)
from holdfast.tools.results import error_text, output_of
from holdfast.tools.running import run, surprise
from holdfast.tools.toolbox import Toolbox

__all__ = ["Answer", "Door", "Gateway", "Permissions", "Question", "Scope", "Toolbox"]

GRACE = 5.0
"""Seconds that a tool may clean up when its time is up, before it is abandoned."""
PREVIEW = 10.0
"""Seconds that a preview may take; without it the person is asked all the same."""

PLACEHOLDER = re.compile(r"\[secret: [a-z ]+\]")
"""What stands where a secret was taken out of a result."""
NOT_THE_SECRET = (
    "Not run. {0} is no text of the file or page: it stands where a secret was, which you are not "
    "shown. Written or sent, it would destroy or replace the secret. Edit around it, with `old` "
    "and `new` that leave it out, or ask the user to do this part."
)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The standing ones; what is granted in a session comes with each call."""

    mode: Mode = Mode.ASK
    rules: Rules = Rules()


class NotRun(Exception):
    """The call ends here; the words are its result."""


class Gateway:
    def __init__(
        self,
        toolbox: Toolbox,
        workspace: Path,
        *,
        permissions: Permissions,
        timeout: float = 600.0,
        always: Callable[[str], None] | None = None,
        grace: float = GRACE,
    ) -> None:
        self.toolbox, self.workspace = toolbox, workspace
        self.permissions = permissions
        """May be replaced at any time; it counts from the next call on."""
        self._timeout, self._grace, self._always = timeout, grace, always

    async def perform(
        self,
        call: ToolCall,
        door: Door,
        *,
        verdict: Verdict | None = None,
        granted: tuple[str, ...] = (),
    ) -> None:
        """Run one call, if it may run, and record what came of it: one `ToolFinished`. `verdict`
        is what was decided before a crash. Cancelled, it records nothing."""
        try:
            read = self._read(call)
            read = await self._permitted(read, door, verdict, (*door.granted, *granted))
        except NotRun as words:
            finished = ToolFinished(call.id, Outcome.NOT_RUN, str(words), door.now())
            return await door.record(finished)
        unsafe = read.tool.spec.effect is not SideEffect.READ
        await door.record(ToolStarted(call.id, door.now()), durable=unsafe)
        await door.record(
            await run(read, door, seconds=self._seconds(read.tool), grace=self._grace)
        )

    async def perform_all(
        self,
        calls: Sequence[ToolCall],
        door: Door,
        *,
        verdicts: Mapping[str, Verdict] | None = None,
        granted: tuple[str, ...] = (),
    ) -> None:
        """All of them: at once if none changes anything, else one after the other, as the model
        wrote them."""
        known = verdicts or {}
        tools = (self.toolbox.get(call.name) for call in calls)
        if len(calls) == 1 or any(tool.spec.mutates for tool in tools if tool):
            for call in calls:
                await self.perform(call, door, verdict=known.get(call.id), granted=granted)
            return
        async with anyio.create_task_group() as group:
            for call in calls:

                async def one(call: ToolCall = call) -> None:
                    await self.perform(call, door, verdict=known.get(call.id), granted=granted)

                group.start_soon(one)

    async def probe(self, call: ToolCall, door: Door) -> Output | None:
        """What an unsafe call brought which a crash left unknown, if its tool can find out."""
        tool = self.toolbox.get(call.name)
        if tool is None or tool.probe is None:
            return None
        try:
            with anyio.fail_after(self._seconds(tool)):
                value = await tool.probe(tool.parse(call.arguments), door.context(call, tool))
        except Exception:  # then nobody can say
            return None
        return None if value is None else output_of(value)

    # --- before it runs -------------------------------------------------------------------------

    def _read(self, call: ToolCall) -> Read:
        tool = self.toolbox.get(call.name)
        if tool is None:
            raise NotRun(not_found(call.name, self.toolbox.specs))
        try:
            arguments = tool.parse(call.arguments)
            touch = seen_from(self.workspace, tool.touch(arguments, self.workspace))
        except (BadArguments, ToolError) as wrong:
            raise NotRun(str(wrong)) from None
        except Exception as error:
            raise NotRun(f"{surprise(error)} Its arguments could not be read.") from error
        if looks_only(tool, touch):
            return Read(call, tool, arguments, touch, self._barred(tool, touch))
        if placeholder := PLACEHOLDER.search(call.arguments):
            raise NotRun(NOT_THE_SECRET.format(placeholder[0]))
        return Read(call, tool, arguments, touch)

    def _barred(self, tool: Tool, touch: Touch) -> tuple[str, ...]:
        """What rules forbid, or ask about, that do not speak of the call as such."""
        rules = self.permissions.rules
        named = (one for one in (*rules.deny, *rules.ask) if one.names(tool, touch))
        return tuple(one.pattern.text for one in named if one.pattern and not one.hits(tool, touch))

    async def _permitted(
        self, read: Read, door: Door, verdict: Verdict | None, granted: tuple[str, ...]
    ) -> Read:
        """The call as it may run; the person may have changed its arguments."""
        if verdict is Verdict.REFUSED:
            raise NotRun(said_no(""))
        judgement = self._judge(read, granted)
        if judgement.verdict is Ruling.DENY:
            await self._refuse(read.call, door, judgement)
        if verdict is Verdict.ALLOWED:  # before the crash, for these arguments
            return read
        if judgement.verdict is Ruling.ASK:
            return await self._ask(read, door, judgement, granted)
        if read.touch.access not in LOOKS_ONLY:
            decided = Decided(read.call.id, Verdict.ALLOWED, door.now(), by=judgement.by)
            await door.record(decided)
        return read

    def _judge(self, read: Read, granted: tuple[str, ...]) -> Judgement:
        mode, rules = self.permissions.mode, self.permissions.rules
        return judge(read.tool, read.touch, mode, rules, granted)

    async def _ask(
        self, read: Read, door: Door, judgement: Judgement, granted: tuple[str, ...]
    ) -> Read:
        question = Question(
            call=read.call,
            tool=read.tool,
            touch=read.touch,
            why=judgement.why,
            preview=await self._preview(read),
            suggestion=self._suggestion(read, granted),
        )
        answer = await door.ask(question)
        if not answer.allowed:
            refused = Decided(
                read.call.id, Verdict.REFUSED, door.now(), by=answer.by, words=answer.words
            )
            await door.record(refused)
            raise NotRun(said_no(answer.words, by=answer.by))
        rule = ""
        if answer.arguments and answer.arguments != read.call.arguments:
            read = await self._changed(read, door, answer, granted)
        elif answer.scope is not Scope.ONCE:
            rule = question.suggestion
        if rule and answer.scope is Scope.ALWAYS and self._always is not None:
            self._always(rule)
        changed = "" if read.call is question.call else read.call.arguments
        await door.record(
            Decided(
                read.call.id,
                Verdict.ALLOWED,
                door.now(),
                by=answer.by,
                arguments=changed,
                grants=rule,
            )
        )
        return read

    async def _changed(
        self, read: Read, door: Door, answer: Answer, granted: tuple[str, ...]
    ) -> Read:
        """With the person's arguments it is another call, which a rule may forbid."""
        call = replace(read.call, arguments=answer.arguments)
        try:
            changed = self._read(call)
        except NotRun as wrong:
            words = f"the changed arguments cannot be used: {wrong}"
            await door.record(
                Decided(call.id, Verdict.REFUSED, door.now(), by=answer.by, words=words)
            )
            raise NotRun(f"The user changed the arguments of this call. Not run: {wrong}") from None
        judgement = self._judge(changed, granted)
        if judgement.verdict is Ruling.DENY:
            await self._refuse(call, door, judgement)
        return changed

    async def _refuse(self, call: ToolCall, door: Door, judgement: Judgement) -> None:
        await door.record(Decided(call.id, Verdict.REFUSED, door.now(), by=judgement.by))
        raise NotRun(f"Not run. {judgement.why}")

    def _suggestion(self, read: Read, granted: tuple[str, ...]) -> str:
        """A rule that would have made the question needless; empty if none can."""
        rule = suggestion(read.tool, read.touch)
        if rule and self._judge(read, (*granted, rule)).verdict is Ruling.ALLOW:
            return rule
        return ""

    async def _preview(self, read: Read) -> str:
        if read.tool.preview is None:
            return ""
        try:
            with anyio.fail_after(PREVIEW):
                return await read.tool.preview(read.arguments, self.workspace)
        except Exception as error:
            return f"(There is no preview: {error_text(error)})"

    def _seconds(self, tool: Tool) -> float:
        return self._timeout if tool.timeout is None else tool.timeout


def looks_only(tool: Tool, touch: Touch) -> bool:
    return tool.spec.effect is SideEffect.READ and touch.access in LOOKS_ONLY


def seen_from(workspace: Path, touch: Touch) -> Touch:
    """With paths as rules write them: relative to the workspace, where they are in it."""
    inside = f"{workspace.as_posix()}/"

    def name(subject: str) -> str:
        is_path = kind_of(touch.access) is Kind.PATH or not re.search(r"\s", subject)
        return subject.removeprefix(inside) if is_path else subject

    return replace(touch, subjects=tuple(map(name, touch.subjects)))


def said_no(words: str, by: str = USER) -> str:
    said = "The user said no" if by == USER else "It was not allowed"
    why = f": {words.strip()}" if words.strip() else "."
    return f"Not run. {said}{why}"
