"""Each idea stands where `doubles.toml` says, and nowhere else."""

from __future__ import annotations

from tests.meta.doubles import ideas, tree_here


def test_an_idea_stands_where_it_is_said_to_and_one_more_place_is_noticed() -> None:
    tree = tree_here()
    for idea in ideas():
        assert idea.found(tree) == sorted(idea.places), (
            f"{idea.name}: write it in one place, or say in doubles.toml why it is another idea"
        )
        assert idea.stands_in("cli/planted.py", idea.sample), idea.name
