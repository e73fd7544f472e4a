"""Makes shop/, a small git repository with two commits. The second one has a mistake in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SHOP = Path("shop")
WHO = {"NAME": "Ana", "EMAIL": "ana@example.com", "DATE": "2031-05-24T09:00:00Z"}

PRICES = """\
def total(prices, discount=0):
    \"\"\"The sum of the prices, less a discount in percent.\"\"\"
    return sum(prices) * (100 - discount) / 100
"""
TESTS = """\
from prices import total


def test_sum():
    assert total([20, 30]) == 50
"""
NEW_TEST = """

def test_discount():
    assert total([100], discount=10) == 90
"""


def git(*words: str) -> None:
    """git, with the same author and time always, so that the commits have the same names everywhere."""
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in WHO.items()}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=SHOP, check=True, env={**os.environ, **who, **alone})


def main() -> None:
    SHOP.mkdir()
    git("init", "--quiet", "--initial-branch=main")
    (SHOP / "prices.py").write_text(PRICES)
    (SHOP / "test_prices.py").write_text(TESTS)
    (SHOP / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    (SHOP / ".gitignore").write_text("__pycache__/\n")
    git("add", ".")
    git("commit", "--quiet", "--message=Prices can be added up")
    (SHOP / "prices.py").write_text(PRICES.replace("(100 - discount) / 100", "(100 - discount) // 100"))
    (SHOP / "test_prices.py").write_text(TESTS + NEW_TEST)
    git("commit", "--quiet", "--all", "--message=Whole amounts only")


if __name__ == "__main__":
    main()
