"""Check that `ps` only lists processes. The forms that are known not to show their environment are an allowlist.

procps reads the words in the UNIX way. If it finds *any* error in them, it reads the same words again in the BSD way,
in which an `e` in a bundle of letters, with or without a dash, shows the environment. So no word may contain such an
`e`, not even a value that the BSD way would read as a bundle; except in `-e` as people write it, if nothing else in
the line can be an error.
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
"""Columns that may be shown and sorted by: all but the environment and unusual ones."""

_COLUMN = "|".join(re.escape(name) for name in sorted(_COLUMNS, key=len, reverse=True))
_SHOWN = rf"(?:{_COLUMN})(?::\d+)?(?:=[A-Z%]*)?"
_FORMAT = rf"{_SHOWN}(?:,{_SHOWN})*,?"
_KEY = rf"[-+]?(?:{_COLUMN})(?:,[-+]?(?:{_COLUMN}))*"
_VALUE = r"(?:[^eE\s-][^eE\s]*|[^eE\s-][^eE\s]*[dzipkoOqtUN,:+%._=-]\S*|[dzipkoOqtUN]\S*)"
"""The value of an option that takes none in the BSD way: no `e` that it would reach."""

_ANYWHERE = rf"""
    --(?: forest | cumulative | headers? | headings? | no-?headers? | no-?headings? )
  | --sort[ =]{_KEY}
  | --(?: cols | columns | width | rows | lines )[ =]\d+
"""
"""Options that go with any form and are never an error."""

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
    """Return what keeps ps from running unasked, or None. `line`: the words after `ps`, separated by one blank."""
    if _HARMLESS.fullmatch(line):
        return None
    return Trouble(line, "unknown: may print the environment of processes, which may hold secrets")
