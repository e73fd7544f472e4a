"""Whether `ps` only lists processes. Its forms that are known not to show their environment are an allowlist.

procps reads the words in the UNIX way; where it finds *any* error in them, it reads the same words again in the BSD
way, in which an `e` in a bundle of letters, dashed or not, shows the environment. So no word may hold such an `e`, not
even a value that the BSD way would take for a bundle; except in `-e` as people write it, where nothing else in the line
can be an error.
"""

from __future__ import annotations

import re

from signoff.policy.shell.languages.trouble import Trouble

_COLUMNS = frozenset(
    """
    %cpu %mem args blocked bsdstart bsdtime c caught cgname cgroup cls cmd comm command cp cputime cputimes drs egid
    egroup etime etimes euid euser exe f fgid fgroup flag flags fname fuid fuser gid group ignored label lstart lwp
    maj_flt majflt min_flt minflt ni nice nlwp nwchan oom pcpu pending pgid pgrp pid pmem policy ppid pri psr rgid
    rgroup rss rssize rsz rtprio ruid ruser s sched sess sgi_p sgid sgroup sid sig size spid stackp start start_time
    stat state stime suid suser svgid svuid sz thcount tid time times tname tpgid trs tt tty ucmd ucomm uid uname user
    vsize vsz wchan
""".split()
)
"""What may be shown and sorted by: all but the environment and the unusual."""

_COLUMN = "|".join(re.escape(name) for name in sorted(_COLUMNS, key=len, reverse=True))
_SHOWN = rf"(?:{_COLUMN})(?::\d+)?(?:=[A-Z%]*)?"
_FORMAT = rf"{_SHOWN}(?:,{_SHOWN})*,?"
_KEY = rf"[-+]?(?:{_COLUMN})(?:,[-+]?(?:{_COLUMN}))*"
_VALUE = r"(?:[^eE\s-][^eE\s]*|[^eE\s-][^eE\s]*[dzipkoOqtUN,:+%._=-]\S*|[dzipkoOqtUN]\S*)"
"""Of an option that the BSD way does not know to take a value: no `e` that it would come to."""

_ANYWHERE = rf"""
    --(?: forest | cumulative | headers? | headings? | no-?headers? | no-?headings? )
  | --sort[ =]{_KEY}
  | --(?: cols | columns | width | rows | lines )[ =]\d+
"""
"""What stands with any form, and is never an error."""

_WITHOUT_E = rf"""
    -[AadfFjlLmwyHNT]+
  | [aAcfgjlmrsuvwxXHLTS]+
  | -[AadfFjlLmwyHNT]*o[ ]?{_FORMAT}
  | [aAcfgjlmrsuvwxXHLTS]*o[ ]?{_FORMAT}
  | --format[ =]{_FORMAT}
  | k[ ]?{_KEY}
  | -[AadfFjlLmwyHNT]*[pqCGgstuU][ ]?{_VALUE}
  | [axuwfjl]*[pUt][ ]?{_VALUE}
  | --(?: user | User | group | Group | pid | ppid | quick-pid | sid | tty )[ =][\w,.+/-]+
  | --deselect
  | {_ANYWHERE}
"""
_WITH_E = rf"""
    (?: -(?=[fFlLjHyw]*e)[efFlLjHyw]+(?:[ ]-?w+)? | -e[ ]-(?:f|F|l|j|H|L|w+)
      | -(?:e|ew+|we|eL|Le)(?:[ ]-w+)?(?:[ ]-|(?<=e)|(?<=w)|(?<=L))o[ ]?{_FORMAT} )
    (?: [ ](?: -?ww* | {_ANYWHERE} ) )*
"""
_HARMLESS = re.compile(
    rf"(?: | -?V | --version | --info | --help(?:[ =][a-z])? | {_WITH_E} | (?:{_WITHOUT_E})(?:[ ](?:{_WITHOUT_E}))* )",
    re.VERBOSE,
)


def ps_trouble(line: str) -> Trouble | None:
    """What keeps ps from running unasked, given the words after `ps` with one blank between them."""
    if _HARMLESS.fullmatch(line):
        return None
    return Trouble(line, "unknown: may print the environment of processes, which may hold secrets")
