"""What the harness says to a model, word for word, where it is not part of a rule.

The words against inventing and the nudge for silence are those of LocalCowork, the result of a
cancelled call is buddy's: two of the systems that Holdfast unites, where they were found by
watching small models.
"""

from holdfast.core.events import Purpose
from holdfast.core.messages import Note

CONCLUDE = (
    "Based on the tool results above, provide a concise summary.\n"
    "CRITICAL RULES:\n"
    "- ONLY report results you actually received from tool calls above.\n"
    "- If a file was not processed, say 'not processed' — do NOT guess or invent results.\n"
    "- If no tool results are visible, say 'I was unable to complete the task.'\n"
    "Do NOT call any more tools."
)

HEADINGS = ("Task:", "Constraints:", "Files:", "Decisions:", "Next:")
SUMMARISE = (
    "Older messages are about to leave your view. Write down what you must not forget, in these "
    "five lines and nothing else:\n" + "\n".join(HEADINGS)
)

CUT_SHORT = (
    "Your reply was cut off at the output limit. Continue exactly where it stopped, without "
    "repeating anything."
)

CANCELLED = "operation cancelled by user"
TIME_WAS_UP = "Not run: the time of the run was up."
PERHAPS = "It may or may not have taken effect. Check before you call it again."
LEFT_OPEN = (
    "Not run: the program stopped before this call began, and the user has said something since. "
    "Make the call again if it is still wanted."
)
CRASHED = f"The process stopped while this tool was running. {PERHAPS}"
CANCELLED_UNDER_WAY = f"Cancelled by the user while this tool was running. {PERHAPS}"
LATE_UNDER_WAY = f"Given up when the time of the run was up, while this tool was running. {PERHAPS}"


def instruction(purpose: Purpose) -> tuple[Note, ...]:
    """What a request ends with, beside the history."""
    match purpose:
        case Purpose.WORK:
            return ()
        case Purpose.CONCLUDE:
            return (Note(CONCLUDE),)
        case Purpose.SUMMARISE:
            return (Note(SUMMARISE),)


def silence(calls: int) -> str:
    if not calls:
        return (
            "You returned an empty response. Please answer the user's question or call the "
            "appropriate tool now."
        )
    return (
        f"You returned an empty response after processing {calls} tool call(s). If there are more "
        "files to process, call the next tool now. If the task is complete, provide a final "
        "summary of what was done."
    )
