"""Command lines in what commands and pages print."""

import re
import shlex

COMMAND = re.compile(
    r"(?:(?<![\w`])|(?<=`))((?:breakeven|python -m workers\.run)"
    r" (?:\"[^\"]*\"|'[^']*'|[^;`)\n\"'<])+)"
)
NAMES = (
    "advise",
    "app",
    "audit",
    "calibrate",
    "export-policy",
    "import",
    "new",
    "plan",
    "plot",
    "query",
    "reanalyse",
    "report",
    "run",
)


def commands_in(text: str) -> set[str]:
    """The command lines in a text: each ends its clause. A bare name between backticks is that of a
    command.
    """
    found = set()
    for match in COMMAND.finditer(text):
        clause = match[1] if '"' in match[1] else re.split(r"[,.:](?: |$)", match[1])[0]
        command = clause.strip().rstrip(".,:")
        program, _, rest = command.removeprefix("python -m ").partition(" ")
        named = text[match.start(1) - 1 : match.start(1)] == "`" and len(shlex.split(rest)) == 1
        if program == "workers.run" or (rest.split()[0] in NAMES and not named):
            found.add(command)
    return found
