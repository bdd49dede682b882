"""`holdfast demo`: one scripted run in the terminal, through the real machine.

The model is a script that behaves as small models do on a bad day; the loop around it is real.
"""

from holdfast.core.events import ModelReplied, ToolFinished
from holdfast.core.limits import Settings
from holdfast.core.messages import ToolCall
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.testing.script import Answer, Played, Says, calls, says, several, wants
from holdfast.testing.told import told

WINDOW = 4_096
TASK = "Put the receipts in ./receipts into a table, then mail it to ana@example.org."
RECEIPTS = {
    "coffee.txt": ("Blue Bottle Coffee", "2026-03-02", "11.50"),
    "office.txt": ("Staples", "2026-03-04", "84.20"),
    "train.txt": ("Deutsche Bahn", "2026-03-09", "139.00"),
}
TOOLS = (
    ToolSpec(name="list_dir", description="List a folder.", effect=SideEffect.READ, mutates=False),
    ToolSpec(name="read_file", description="Read a file.", effect=SideEffect.READ, mutates=False),
    ToolSpec(name="send_mail", description="Send a mail."),
)
SCRIPT: tuple[tuple[str, Says], ...] = (
    ("", calls("list_dir", path="receipts")),
    (
        "A tool that does not exist:",
        several(wants("raed_file", path="coffee.txt"), wants("read_file", path="coffee.txt")),
    ),
    ("A reply with nothing in it:", says("")),
    (
        "Results that are far too long for the window:",
        several(wants("read_file", path="office.txt"), wants("read_file", path="train.txt")),
    ),
    (
        "The mail goes out, and the process is killed before it can write down the result:",
        calls("send_mail", to="ana@example.org", subject="Receipts", total="234.70"),
    ),
    (
        "The next process has not sent it again. It said that nobody knows, and how to find out:",
        calls("read_file", path="sent.log"),
    ),
    (
        "",
        says(
            "| vendor | date | amount |\n|---|---|---|\n"
            + "\n".join(f"| {' | '.join(row)} |" for row in RECEIPTS.values())
            + "\n\nTotal: 234.70. The mail to ana@example.org went out; sent.log has it once."
        ),
    ),
)


class Killed(Exception):
    """Stands for SIGKILL: nothing after it is done or written."""


class Demo(Played):
    """A played session whose process dies while it sends its first mail."""

    mails = 0

    def run(self, call: ToolCall) -> ToolFinished:
        if call.name == "send_mail":
            self.mails += 1
            raise Killed
        return super().run(call)


def read_file(call: ToolCall) -> str:
    for name, (vendor, date, amount) in RECEIPTS.items():
        if name in call.arguments:
            noise = "".join(f"line {number}: {'.' * 40}\n" for number in range(200))
            return f"Vendor: {vendor}\nDate: {date}\nAmount: {amount}\n{noise}"
    return "2026-03-10 09:12:44 to=ana@example.org subject=Receipts status=sent"


def last_request(played: Played) -> str:
    return "\n".join(message.text for message in played.requests[-1].messages)


def main() -> int:
    settings = Settings.for_window(WINDOW, system="You put receipts into tables.", tools=TOOLS)
    tools: dict[str, Answer] = {"list_dir": "\n".join(RECEIPTS), "read_file": read_file}
    played = Demo([reply for _, reply in SCRIPT], tools)
    try:
        played.user(TASK, settings)
    except Killed:
        played.killed()
    print(f"A scripted model in a window of {WINDOW} tokens; the loop around it is the real one.\n")
    comments = iter(comment for comment, _ in SCRIPT)
    for event in played.events:
        if isinstance(event, ModelReplied) and (comment := next(comments)):
            print(f"\n  {comment}")
        for line in told([event], width=92):
            print("    " + line)
    cuts = [line for line in last_request(played).splitlines() if "truncated: showing" in line]
    print("\n  What the model saw at the end of the first of the long results:")
    print("    " + cuts[0])
    print(f"\n{played.stopped.text}\n\nMails sent: {played.mails}.")
    return 0
