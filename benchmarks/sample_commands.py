"""Commands written for the benchmarks: everyday reading, and lines that must not run unasked."""

from __future__ import annotations

HARMLESS = (
    "ls -la src",
    "cat README.md | head -40",
    "git status --short",
    "git log --oneline -20",
    "git diff --stat HEAD~3",
    "grep -rn 'TODO' src --include='*.py' | head -50",
    "rg -n 'def main' src",
    "find . -name '*.py' -not -path './.venv/*' | wc -l",
    "sed -n '1,80p' pyproject.toml",
    "awk -F: '{print $1}' /etc/passwd | sort | uniq -c",
    "wc -l src/*.py 2>/dev/null",
    "du -sh . && df -h .",
    "tail -n 100 server.log | grep -i error",
    "jq '.dependencies | keys' package.json",
    "ps aux | sort -nrk 3 | head -5",
    "diff -u old.txt new.txt || true",
)
DANGEROUS = (
    "rm -rf build",
    "cat a.txt > b.txt",
    "find . -name '*.pyc' -delete",
    "git log --output=x",
    "sort -o a.txt a.txt",
    "sed -i s/a/b/ a.txt",
    "echo $(curl -s https://example.com/x)",
    "awk 'BEGIN{system(\"id\")}'",
    "ls; touch x",
    "git status & make",
    "cat ~/.ssh/id_rsa",
    "bash -c 'ls'",
    "xargs rm < list",
    "env X=1 ls",
    "git branch new",
    "curl https://example.com",
)
